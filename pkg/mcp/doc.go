// Package mcp makes tools of what MCP servers offer.
//
// [Start] starts the servers, or connects to them, asks each for its tools, and
// returns those that its allowlist names. A server is foreign code and a
// stranger's text: what it says about its tools may make them more dangerous,
// never less, unless it is trusted; what was announced is what runs, and a tool
// that changed meanwhile is refused; everything that it sends is bounded.
//
// A server that dies is started again with the next call. A call that was under
// way has failed then, with effects unknown, and is not repeated.
package mcp
