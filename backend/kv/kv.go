package kv

import "context"

// Rev is a revision of the whole store. It grows with every commit, is never reused, and 0 means "no revision":
// an absent key, or the state before the first commit.
type Rev uint64

// GuardKind says what a Guard asserts. The zero value is invalid.
type GuardKind uint8

// The guards an engine knows. Not stored; order is free.
const (
	GuardInvalid GuardKind = iota
	// GuardRev holds when Key's revision is exactly Rev; Rev 0 asserts absence.
	GuardRev
	// GuardExists holds when Key is present at any revision.
	GuardExists
	// GuardEmpty holds when no key begins with Key.
	GuardEmpty
)

// Guard is a condition of a Commit, evaluated atomically with its operations.
type Guard struct {
	Kind GuardKind
	Key  []byte
	Rev  Rev
}

// KeyRev asserts that key was last written at rev; rev 0 asserts that it is absent.
func KeyRev(key []byte, rev Rev) Guard { return Guard{Kind: GuardRev, Key: key, Rev: rev} }

// KeyExists asserts that key is present.
func KeyExists(key []byte) Guard { return Guard{Kind: GuardExists, Key: key} }

// PrefixEmpty asserts that no key begins with prefix.
func PrefixEmpty(prefix []byte) Guard { return Guard{Kind: GuardEmpty, Key: prefix} }

// OpKind says what an Op does. The zero value is invalid.
type OpKind uint8

// The operations of a Commit.
const (
	OpInvalid OpKind = iota
	OpPut
	OpDelete
)

// Op is one write of a Commit. A key may appear in at most one Op of a Commit.
type Op struct {
	Kind  OpKind
	Key   []byte
	Value []byte
}

// Put sets key to value; an empty value is a value, not an absence.
func Put(key, value []byte) Op { return Op{Kind: OpPut, Key: key, Value: value} }

// Delete removes key; deleting an absent key is not an error.
func Delete(key []byte) Op { return Op{Kind: OpDelete, Key: key} }

// Entry is a key with its value and the revision that last wrote it. Rev 0 means that the key is absent.
// Key and Value belong to the caller of Get or List and stay valid after the Snapshot is closed.
type Entry struct {
	Key   []byte
	Value []byte
	Rev   Rev
}

// Batch is everything that one commit changed under a watched prefix. Keys only: a watcher that wants values takes a
// Snapshot, so that a slow one costs no memory.
type Batch struct {
	Rev  Rev
	Keys [][]byte
}

// Caps are an engine's limits.
type Caps struct {
	MaxCommitBytes int // keys and values of one Commit, in bytes
	MaxCommitOps   int // operations of one Commit
	MaxValueBytes  int // one value, in bytes
}

// Usage is what df shows of the engine's volume, in bytes.
type Usage struct {
	Total uint64 // of the volume
	Free  uint64 // that commits may still use: the engine's reserve is already taken off
	Used  uint64 // by this engine's files
}

// Store is a transactional key-value engine; see the package doc for the contract.
type Store interface {
	// Snapshot opens a linearizable point in time: it sees every Commit that returned before the call.
	Snapshot(ctx context.Context) (Snapshot, error)
	// Commit applies all ops at one new revision if all guards hold, else it changes nothing.
	// Errors: ErrConflict, ErrTooLarge, ErrNoSpace, ErrInvalid, ErrUnavailable (no effect); ErrAmbiguous (unknown).
	Commit(ctx context.Context, guards []Guard, ops []Op) (Rev, error)
	// Watch delivers every commit with revision >= from that touches prefix. ErrCompacted if from is too old.
	Watch(ctx context.Context, prefix []byte, from Rev) (Watcher, error)
	// Compact lets the engine forget what only watchers older than upto need, and reclaim space.
	Compact(ctx context.Context, upto Rev) error
	Caps() Caps
	Usage() (Usage, error)
	Close() error
}

// Snapshot is a consistent view of the commits up to Rev. Safe for concurrent use. Must be closed.
type Snapshot interface {
	// Get returns one Entry per key, in order; absent keys have Rev 0.
	Get(keys ...[]byte) ([]Entry, error)
	// List returns up to limit entries under prefix in key order, strictly after the key after (nil: from the start).
	List(prefix, after []byte, limit int) ([]Entry, error)
	Rev() Rev
	Close()
}

// Watcher is a stream of batches in revision order.
type Watcher interface {
	// Next blocks for the next batch. ErrSlow when the watcher fell behind and was cut off (take a Snapshot and watch
	// anew), ErrClosed after Close, else ctx.Err().
	Next(ctx context.Context) (Batch, error)
	Close()
}
