package cli

// Version is that of all commands, semantic.
const Version = "0.1.0"
