// Package refold folds a log again and holds each decision of a kernel that stands
// in it against what [session.React] and [session.Handle] answer at that point.
//
// Every decision records the last record of its session that had been folded, the
// last of the world, and the time that the kernel went by. With these three the
// pure functions must give the same fact again, byte for byte; if they do not, the
// log was written by other rules, or by somebody else.
package refold
