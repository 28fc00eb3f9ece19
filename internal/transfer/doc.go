// Package transfer writes the log in formats that others read, and reads back
// what can become a log again.
//
// JSON lines ([Line], [Writer]) lose nothing: sequence, time, subject, headers and
// body come back byte for byte, each line with its hash, the whole with its chain.
// CloudEvents ([CloudEvent]) are for what reads CloudEvents, ATIF ([Trajectory])
// for what reads trajectories of agents; neither leads back.
package transfer
