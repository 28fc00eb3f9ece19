// Package streams brings a NATS server to what streams.yaml declares.
//
// [Load] reads the file, [MakePlan] compares it with a server and says of each
// difference whether it can be changed, cannot be changed, or would lose data;
// [Apply] carries the plan out. One file serves the embedded server and a
// cluster.
package streams
