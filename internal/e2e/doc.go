// Package e2e holds the tests of the whole: real processes of the real
// commands, a real llama-server with a scripted model, the real nats program,
// and real signals.
package e2e
