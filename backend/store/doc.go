// Package store is the versioned memory: an inode tree, heads, immutable versions and content-addressed blobs, over the
// key-value contract of backend/kv. It knows no policy and no FUSE.
//
// # Keys
//
// Ids are raw UUIDv7, sums raw SHA-256, integers big-endian. keys.go has one constructor per key.
//
//	m                             format version, store id; an unknown format is refused
//	i                             next inode number; given out in blocks
//	n/<id>                        inode
//	u/<dir>                       when a directory's names last changed: apart from n/, so that creates do not conflict
//	d/<parent>/<name>             dentry of a memory, directory or symlink
//	e/<owner> NUL <parent>/<name> dentry of an ephemeral, which only its owner sees
//	h/<id>                        head: the compare-and-swap target of content
//	v/<id>/<n>                    version record, immutable
//	t/<parent>/<name> NUL <id>    a memory or directory that was last seen under this name and is deleted
//	o/<id>                        inode of a directory that is removed, so that what lay in it has a last path
//	b/<sum>                       bytes, the list of their chunks, or the tag of a chunk's file (files.go)
//	r/<sum>/<who>                 reference that keeps a blob: <id>/<n> of a version (n = 0: an ephemeral's head), or the
//	                              sum of the chunk list that has it
//	g/<sum>                       may be garbage: no reference was known when this was written
//	c/<owner> NUL <id>            kept for one principal beside the tree, as the bytes of a stale write
//	w/<time><op>                  change index, newest first: the time is inverted nanoseconds since 1970
//	s/<owner> NUL <session>       how far a session has looked at the changes
//	a/i/<op>                      audit intent, or the fence of a commit that was given up
//	a/tail                        what the audit log has taken over
//	mv                            written by every move of a directory, so that two of them cannot make a cycle
//
// # Guards
//
// Write: the head at its revision. Create: the parent exists, the dentry is absent. Rename: both dentries at their
// revision, both parents exist. Rmdir: the directory's dentry at its revision, and no dentry below it. A commit that
// carries an intent is guarded by the intent's absence (its fence).
//
// # Invariants
//
//  1. Nothing here assumes that nobody else writes: every decision is guarded, and a lost race is read and decided anew,
//     at most maxTries times.
//  2. A version is never changed; a head always is the last version that is no delete.
//  3. Bytes are checked against their hash whenever they are read.
//  4. A blob is deleted only in a commit that asserts that nothing refers to it, and referred to only in a commit that
//     asserts that it exists.
package store
