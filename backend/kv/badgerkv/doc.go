// Package badgerkv is the embedded engine: kv.Store on Badger. It is the only importer of Badger.
//
// One goroutine commits. It takes the commits that wait (up to 64, or what fits one Badger transaction), evaluates
// their guards in order against the last published state and what the group has changed so far, writes the survivors
// in one transaction with one fsync, publishes, and answers. Revisions are ours: Badger runs in managed mode, a group is
// written at the revision of its last commit, and a Snapshot reads at the published revision, so that it sees whole
// groups only and never waits for a commit that is on its way (Badger's own transactions do).
//
// Stored form: every user key is prefixed by one byte, every value by the 8 bytes of its revision. The revision counter
// is a key of its own, outside of the user's range, and written in the same transaction: Badger's highest version is no
// substitute, since it falls when compaction drops the tombstones of the last commit, and a revision would be used twice.
//
// Traps of Badger that are closed here, each with a test:
//
//  1. SyncWrites is off by default.
//  2. Its conflict detection misses phantom inserts: not used; one committer, and PrefixEmpty is a scan.
//  3. A stalled db.Subscribe callback stops every writer: not used; a bounded ring of {revision, keys}.
//  4. Memtable logs and tables are mapped sparse files, so that a full disk is a SIGBUS that no Go code can catch:
//     space.go keeps a reserve, Open and Close check that they have room first.
//  5. y.Wrap drops the cause of an error, so that errors.Is fails: errors.go.
//  6. After a failed write it may have no memtable, and the next one would exit the process: the store then refuses
//     everything (kv.ErrUnavailable) until it is opened again.
//  7. It skips a damaged table with a log line and goes on without its keys: Open answers kv.ErrCorrupt.
//  8. A transaction is bounded by count as well as by bytes (15 % of the memtable): each entry is charged for both.
//  9. A log that was written with a larger memtable overflows a smaller one at replay and exits: sizes.go.
//
// It relies on a file system where fsync of a new file makes its name durable too (ext4, XFS, btrfs, tmpfs): Badger does
// not sync the directory after it has made a memtable log.
//
// Lock order: Store.gate before snapshot.mu before Store.mu. Store.mu is not held over a call into Badger.
package badgerkv
