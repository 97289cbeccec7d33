package badgerkv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/dgraph-io/badger/v4"

	"memoryfs/backend/kv"
)

// request is a Commit that waits for the committer.
type request struct {
	ctx    context.Context
	guards []kv.Guard
	ops    []kv.Op
	size   int
	dels   bool
	reply  chan answer // buffered: the committer never waits
}

type answer struct {
	rev kv.Rev
	err error
}

// Commit queues for the committer. Once it is taken, the answer is the true one; if ctx ends before it is known, it is
// ErrAmbiguous.
func (s *Store) Commit(ctx context.Context, guards []kv.Guard, ops []kv.Op) (kv.Rev, error) {
	r := &request{ctx: ctx, guards: guards, ops: ops, reply: make(chan answer, 1)}
	if err := r.check(s.limits); err != nil {
		return 0, err
	}
	select {
	case <-s.closing:
		return 0, fmt.Errorf("%w: %w", kv.ErrUnavailable, kv.ErrClosed)
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: %w", kv.ErrUnavailable, ctx.Err())
	default:
	}
	select {
	case s.queue <- r:
	case <-ctx.Done():
		return 0, fmt.Errorf("%w: %w", kv.ErrUnavailable, ctx.Err())
	case <-s.closing:
		return 0, fmt.Errorf("%w: %w", kv.ErrUnavailable, kv.ErrClosed)
	}
	select {
	case a := <-r.reply:
		return a.rev, a.err
	case <-ctx.Done():
	}
	select {
	case a := <-r.reply:
		return a.rev, a.err
	default:
		return 0, fmt.Errorf("%w: %w", kv.ErrAmbiguous, ctx.Err())
	}
}

func (r *request) check(l kv.Caps) error {
	if len(r.ops) == 0 || len(r.ops) > l.MaxCommitOps {
		if len(r.ops) > l.MaxCommitOps {
			return fmt.Errorf("%w: %d operations", kv.ErrTooLarge, len(r.ops))
		}
		return fmt.Errorf("%w: no operations", kv.ErrInvalid)
	}
	seen := make(map[string]struct{}, len(r.ops))
	for _, op := range r.ops {
		if len(op.Key) == 0 || op.Kind != kv.OpPut && op.Kind != kv.OpDelete {
			return fmt.Errorf("%w: operation %d on %q", kv.ErrInvalid, op.Kind, op.Key)
		}
		if _, twice := seen[string(op.Key)]; twice {
			return fmt.Errorf("%w: key %q twice", kv.ErrInvalid, op.Key)
		}
		seen[string(op.Key)] = struct{}{}
		if len(op.Value) > l.MaxValueBytes {
			return fmt.Errorf("%w: value of %d bytes", kv.ErrTooLarge, len(op.Value))
		}
		r.size += len(op.Key) + len(op.Value)
		r.dels = r.dels || op.Kind == kv.OpDelete
	}
	for _, g := range r.guards {
		if g.Kind < kv.GuardRev || g.Kind > kv.GuardEmpty || len(g.Key) == 0 && g.Kind != kv.GuardEmpty {
			return fmt.Errorf("%w: guard %d", kv.ErrInvalid, g.Kind)
		}
	}
	if r.size > l.MaxCommitBytes {
		return fmt.Errorf("%w: %d bytes", kv.ErrTooLarge, r.size)
	}
	return nil
}

func (s *Store) commitLoop() {
	limit := int(s.db.MaxBatchSize() / 2) // bytes of keys and values; the other half is Badger's bookkeeping
	var first *request
	for {
		if first == nil {
			select {
			case first = <-s.queue:
			case <-s.closing:
				s.refuseAll()
				return
			}
		}
		var group []*request
		group, first = s.gather(first, limit)
		s.commitGroup(group)
	}
}

// gather takes what waits and fits; what does not fit begins the next group.
func (s *Store) gather(first *request, limit int) (group []*request, next *request) {
	group = append(group, first)
	size := first.size
	for len(group) < maxGroup {
		select {
		case r := <-s.queue:
			if size += r.size; size > limit {
				return group, r
			}
			group = append(group, r)
		default:
			return group, nil
		}
	}
	return group, nil
}

func (s *Store) refuseAll() {
	for {
		select {
		case r := <-s.queue:
			r.reply <- answer{0, fmt.Errorf("%w: %w", kv.ErrUnavailable, kv.ErrClosed)}
		default:
			return
		}
	}
}

// commitGroup decides each request in order, writes the survivors together, publishes and answers.
func (s *Store) commitGroup(group []*request) {
	s.mu.Lock()
	rev := s.published
	s.mu.Unlock()
	o := newOverlay(s.db, rev)
	defer o.close()
	normal, deleting := s.room()
	var survivors []*request
	var batches []kv.Batch
	for _, r := range group {
		if err := s.admit(o, r, &normal, &deleting); err != nil {
			r.reply <- answer{0, err}
			continue
		}
		rev++
		o.apply(r.ops, rev)
		survivors = append(survivors, r)
		batches = append(batches, kv.Batch{Rev: rev, Keys: keys(r.ops)})
	}
	if len(survivors) == 0 {
		return
	}
	if err := o.write(rev); err != nil {
		// Badger may or may not have it in its log; nothing is published, and the next group gets new revisions.
		s.skip(rev)
		for _, r := range survivors {
			r.reply <- answer{0, err}
		}
		return
	}
	s.publish(rev, batches)
	for i, r := range survivors {
		r.reply <- answer{batches[i].Rev, nil}
	}
}

// admit evaluates one request: is there room, do its guards hold.
func (s *Store) admit(o *overlay, r *request, normal, deleting *int64) error {
	if err := r.ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
	}
	size := int64(r.size)
	if size > *normal && !(r.dels && r.size <= freeing && size <= *deleting) {
		return fmt.Errorf("%w: %d bytes wanted", kv.ErrNoSpace, r.size)
	}
	for _, g := range r.guards {
		ok, err := o.holds(g)
		if err != nil {
			return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
		}
		if !ok {
			return fmt.Errorf("%w: %q", kv.ErrConflict, g.Key)
		}
	}
	*normal -= size
	*deleting -= size
	return nil
}

func keys(ops []kv.Op) [][]byte {
	k := make([][]byte, len(ops))
	for i, op := range ops {
		k[i] = bytes.Clone(op.Key)
	}
	return k
}

// overlay is the published state with what the group has changed so far.
type overlay struct {
	txn     *badger.Txn
	db      *badger.DB
	changed map[string]change
}

type change struct {
	rev   kv.Rev // 0: deleted
	value []byte
}

func newOverlay(db *badger.DB, rev kv.Rev) *overlay {
	return &overlay{db: db, txn: db.NewTransactionAt(uint64(rev), false), changed: map[string]change{}}
}

func (o *overlay) close() { o.txn.Discard() }

func (o *overlay) apply(ops []kv.Op, rev kv.Rev) {
	for _, op := range ops {
		if op.Kind == kv.OpDelete {
			o.changed[string(op.Key)] = change{}
		} else {
			o.changed[string(op.Key)] = change{rev, op.Value}
		}
	}
}

func (o *overlay) holds(g kv.Guard) (bool, error) {
	if g.Kind == kv.GuardEmpty {
		return o.empty(g.Key)
	}
	rev, err := o.rev(g.Key)
	if g.Kind == kv.GuardExists {
		return rev != 0, err
	}
	return rev == g.Rev, err
}

func (o *overlay) rev(key []byte) (kv.Rev, error) {
	if c, ok := o.changed[string(key)]; ok {
		return c.rev, nil
	}
	item, err := o.txn.Get(dbKey(key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	var rev kv.Rev
	err = item.Value(func(b []byte) error {
		if len(b) < revSize {
			return fmt.Errorf("%w: %q", kv.ErrCorrupt, key)
		}
		rev = kv.Rev(binary.BigEndian.Uint64(b))
		return nil
	})
	return rev, err
}

func (o *overlay) empty(prefix []byte) (bool, error) {
	for k, c := range o.changed {
		if c.rev != 0 && bytes.HasPrefix([]byte(k), prefix) {
			return false, nil
		}
	}
	p := dbKey(prefix)
	it := o.txn.NewIterator(badger.IteratorOptions{Prefix: p})
	defer it.Close()
	for it.Seek(p); it.ValidForPrefix(p); it.Next() {
		if c, ok := o.changed[string(it.Item().Key()[1:])]; !ok || c.rev != 0 {
			return false, nil
		}
	}
	return true, nil
}

// write puts the group into Badger at one timestamp and waits for the fsync.
func (o *overlay) write(rev kv.Rev) error {
	txn := o.db.NewTransactionAt(uint64(rev), true)
	defer txn.Discard()
	for k, c := range o.changed {
		var err error
		if c.rev == 0 {
			err = txn.Delete(dbKey([]byte(k)))
		} else {
			err = txn.SetEntry(badger.NewEntry(dbKey([]byte(k)), dbValue(c.rev, c.value)))
		}
		if err != nil {
			return fmt.Errorf("%w: %w", kv.ErrTooLarge, err) // nothing is written before CommitAt
		}
	}
	if err := txn.CommitAt(uint64(rev), nil); err != nil {
		return fmt.Errorf("%w: %w", kv.ErrAmbiguous, err)
	}
	return nil
}
