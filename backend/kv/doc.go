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
//
// Which errors, when:
//
//  7. A context that ends before an engine has taken a Commit is ErrUnavailable with the context's error, surely without
//     effect; afterwards the answer is the true one, or ErrAmbiguous.
//  8. After Close, Commit is ErrUnavailable; every other call, and the snapshots and watchers that were open, answer
//     ErrClosed. Commits that were queued are answered.
//  9. ErrNoSpace leaves reads as they are. A commit that deletes and puts little is refused later than others, so that
//     space can be freed on a full volume.
//  10. Slices given to an engine are the caller's again when the call returns; entries and batches are the caller's own.
package kv
