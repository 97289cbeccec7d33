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
//  3. What is acknowledged is synced. After a failed write or sync nothing of that group is believed: the file is cut
//     back to what was synced last, and the group is written again (a failed fsync may have dropped the pages).
//  4. An intent is in the log once: after a crash between sync and drop, the last lines tell which are there already.
//  5. No content is in the log, only a salted commitment to it.
//
// Files: segments named by the sequence of their first line, 0600, in a directory of 0700.
//
// Lock order: Log.mu only, never held over a call into the Source or the disk.
package audit
