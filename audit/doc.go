// Package audit is the record of everything that happened to the memory: an append-only log of JSON lines.
//
// A change of the store puts its record into its own commit, as an intent; the log takes intents over in revision order,
// syncs, and only then lets the store drop them. So a change without a record cannot exist, and a record without a
// change neither. Refusals, reads under obligation, mounts and policy loads are written by Append and Refuse.
//
// Invariants:
//
//  1. Sequence numbers begin at 1 and have no gap, over restarts too.
//  2. A line is never rewritten once it is synced; each later layer may hash its exact bytes.
//  3. What is acknowledged is synced. After a failed write or sync nothing of that group is believed: Linux marks the pages
//     of a failed sync clean, so that a second sync succeeds without having written them ("fsyncgate"). The file is cut
//     back to the last synced size, opened anew, and the same bytes are written and synced again.
//  4. An intent is in the log once: after a crash between sync and drop, the lines after the store's note (tail) tell
//     which are there already.
//  5. A change that is in the log is known to the store: as an intent, or by the note. Open refuses a log that is ahead of
//     its store (an older copy of the store was put back), behind it, or cannot be read.
//  6. No content is in the log, only a salted commitment to it.
//
// Files: segments named by the sequence of their first line, 0600, in a directory of 0700. One process writes (it holds a
// flock on the directory); any number of processes read, at any time. A reader may see lines that are not synced yet.
//
// What a crash leaves: a last line without its end, or blocks that were never written (NUL bytes, which no line holds).
// Beyond the store's note both are cut, and a recover record says how many bytes went. Open reads the segments from the
// note on; that each older segment is whole is for Verify, which reads everything.
//
// Lock order: Log.mu and refusals.mu are never held together, nor over a call into the Source or the disk.
package audit
