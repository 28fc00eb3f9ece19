// Package toolworker is the process that runs tools.
//
// It announces its tools, waits until the kernel has made their consumers,
// answers previews, and takes approved invocations through the claim protocol
// (internal/claim): approval checked again, sandboxed, journalled, reported.
// Several processes share the work; each has a directory of its own under the
// state directory, whose lock makes its name unique on the machine.
package toolworker
