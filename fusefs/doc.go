// Package fusefs is the kernel's side of memoryfs: nodes, handles, drafts, caches, the .memory tree and the errno table.
// It is the only importer of go-fuse and stands on backend.View, which decides and records every operation.
//
// Invariants:
//
//  1. Identity is bound when a handle is opened and kept in it: WRITE carries the writer's ids, RELEASE and mmap
//     write-back carry pid 0 (SEMANTICS.md section 1).
//  2. Bytes that are written go to a draft; the store sees them whole, at FLUSH, FSYNC or, for a bare truncation, at the
//     last close.
//  3. EAGAIN never comes from read(2) or write(2).
//  4. The kernel is notified only from the notifier's workers, never inside a handler, and no lock that a handler
//     takes is held meanwhile.
//  5. The page cache of an inode holds the bytes of one committed version; handles that write, and handles opened
//     while a draft is dirty, use direct I/O. (A session's own reader that was opened before the draft became dirty
//     may bring draft bytes into the cache, if no other session reads the file through the cache; the draft's commit
//     or end invalidates them.)
//
// Lock order: node.mu, then Mount.mu. node.mu is not held over View.Save, which waits for invalidations.
package fusefs
