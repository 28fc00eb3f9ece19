// Package architecture holds the table of packages in docs/design.md against the
// code. Its test is all there is.
package architecture
