// Package backend is the governed memory: a View is one principal's eye on the store, and every operation of a View
// decides (policy), does (backend/store) and records (audit), in this one place. Front ends (fusefs, control) hold no
// rights of their own and cannot reach the store but through a View.
//
// Invariants:
//
//  1. Nothing is decided by default: an operation that no rule allows is refused.
//  2. A name that policy does not let a caller list is ErrNotExist in every operation, never ErrDenied.
//  3. A change and its audit intent are one commit of the store; a refusal is recorded too.
//  4. A write is compared by hash with what its writer started from; a stale one is ErrStale and changes nothing.
//  5. When a change is acknowledged, every subscriber (mount) has been told to invalidate it, or was given
//     applyTimeout to do so.
//  6. A file that was created and never committed exists only for the session that created it.
//
// Lock order: Memory.mu, then Session.mu; neither is held over a call into the store, the policy or a subscriber.
package backend
