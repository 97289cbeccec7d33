// Package badgerkv is the embedded engine: kv.Store on Badger. It is the only importer of Badger.
//
// One goroutine commits. It takes the commits that wait (up to 64, or what fits one Badger transaction), evaluates
// their guards in order against the last published state and what the group has changed so far, writes the survivors
// in one transaction with one fsync, publishes, and answers. Revisions are ours: Badger runs in managed mode, a group is
// written at the revision of its last commit, and a Snapshot reads at the published revision, so that it sees whole
// groups only and never waits for a commit that is on its way (Badger's own transactions do).
//
// Traps of Badger that are closed here, each with a test: SyncWrites is off by default; its conflict detection misses
// phantom inserts (not used: one committer and PrefixEmpty); db.Subscribe can stop every writer (not used: a bounded
// ring of {revision, keys}); a full disk kills the process by SIGBUS, since memtables and value log are mapped sparse
// files (a reserve of free space is checked before each group); y.Wrap drops the cause of an error (a failed commit is
// ErrAmbiguous, whatever its text says).
//
// Lock order: Store.mu only; it is not held over a call into Badger.
package badgerkv
