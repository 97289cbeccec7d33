// Package kv is the contract that the store stands on: a small transactional key-value engine. One engine a folder;
// kvtest is the suite that every engine passes.
//
//  1. Commit is linearizable: success means durable, and visible to every later Snapshot.
//  2. ErrConflict, ErrTooLarge, ErrNoSpace and ErrInvalid mean no effect at all; ErrUnavailable means that nothing was
//     sent; ErrAmbiguous means that it may have happened, and the caller settles it by its fence. An engine never
//     retries a Commit.
//  3. Every key carries the revision of the commit that wrote it; revisions grow and are never used again (no ABA).
//  4. A Snapshot sees exactly the commits up to its Rev, in all its reads.
//  5. Watch has no gap, changes no order and splits no commit. A start that is too old is ErrCompacted. A slow watcher
//     is cut off (ErrSlow); it never blocks a writer.
//  6. Nothing is protected beyond the guards given. A key appears once a commit. An empty value is not an absent one.
package kv
