// Package projection keeps a SQLite database that says what stands on the log,
// for people and programs that would rather ask than replay.
//
// The log is the store and the database a view of it: each batch of records is
// one transaction with the checkpoint inside, so that a kill at any point
// leaves a database that some prefix of the log explains, and the next start
// goes on behind it. Whatever is lost or doubted is projected anew.
//
// [Open] holds the checkpoint against the stream's identity and against the
// record that stands there; [Projector] follows the log into the database;
// [Rebuild] writes a new file and puts it in place; [DB.Dump] prints all of it,
// equal for equal logs; [Queries] and [Serve] answer questions about it.
//
// Every record is kept in the table events. One that cannot be read, is forged,
// or may not stand where it does keeps its reason in the column error and
// changes nothing else.
package projection
