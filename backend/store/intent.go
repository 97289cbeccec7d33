package store

import (
	"context"
	"slices"

	"memoryfs/backend/kv"
)

// Intents lists up to limit pending audit intents with a revision over after, in revision order. Several intents never
// share a revision: each is part of its own commit.
func (s *Store) Intents(ctx context.Context, after kv.Rev, limit int) ([]Intent, error) {
	snap, err := s.kv.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	var out []Intent
	var from []byte
	for {
		page, err := snap.List(prefixIntent(), from, pageSize)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			from = e.Key
			op, ok := parseID(e.Key, "a/i/")
			if ok && e.Rev > after && len(e.Value) > 0 && e.Value[0] == formIntent {
				out = append(out, Intent{Rev: e.Rev, Op: op, Data: e.Value[1:]})
			}
		}
		if len(page) < pageSize {
			break
		}
	}
	slices.SortFunc(out, func(a, b Intent) int {
		if a.Rev < b.Rev {
			return -1
		}
		return 1
	})
	return out[:min(limit, len(out))], nil
}

// DropIntents deletes intents that the log has taken over, and keeps tail, in commits of at most half a commit's limit;
// tail goes with the last.
func (s *Store) DropIntents(ctx context.Context, ops []ID, tail []byte) error {
	step := s.kv.Caps().MaxCommitOps / 2
	for first := true; first || len(ops) > 0; first = false {
		n := min(step, len(ops))
		var batch []kv.Op
		for _, op := range ops[:n] {
			batch = append(batch, kv.Delete(keyIntent(op)))
		}
		if ops = ops[n:]; len(ops) == 0 {
			batch = append(batch, kv.Put(keyTail(), tail))
		}
		if _, err := s.kv.Commit(ctx, nil, batch); err != nil {
			return err
		}
	}
	return nil
}

// Tail is what DropIntents kept last; nil if nothing.
func (s *Store) Tail(ctx context.Context) ([]byte, error) {
	snap, err := s.kv.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	e, err := snap.Get(keyTail())
	if err != nil || e[0].Rev == 0 {
		return nil, err
	}
	return e[0].Value, nil
}

// EachVersion calls fn for every version of every memory as of one revision, which it returns, in key order; head tells
// whether it is the head's.
func (s *Store) EachVersion(ctx context.Context, fn func(v Version, head bool) error) (kv.Rev, error) {
	snap, err := s.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	var after []byte
	var last ID
	var head Head
	for {
		page, err := snap.kv.List([]byte("v/"), after, pageSize)
		if err != nil {
			return 0, err
		}
		for _, e := range page {
			after = e.Key
			id, n, ok := parseVersion(e.Key)
			if !ok {
				return 0, ErrCorrupt
			}
			v, err := decodeVersion(id, n, e.Value)
			if err != nil {
				return 0, err
			}
			if id != last {
				if head, err = snap.Head(id); err != nil {
					head = Head{}
				}
				last = id
			}
			if err := fn(v, head.Version == n); err != nil {
				return 0, err
			}
		}
		if len(page) < pageSize || ctx.Err() != nil {
			return snap.Rev(), ctx.Err()
		}
	}
}

// Watcher hands out what commits changed.
type Watcher struct{ kv kv.Watcher }

// Watch begins at a revision. kv.ErrCompacted if that is too long ago.
func (s *Store) Watch(ctx context.Context, from kv.Rev) (*Watcher, error) {
	w, err := s.kv.Watch(ctx, nil, from)
	if err != nil {
		return nil, err
	}
	return &Watcher{w}, nil
}

// Next blocks for the next commit that changed something. kv.ErrSlow when it fell behind.
func (w *Watcher) Next(ctx context.Context) (Batch, error) {
	b, err := w.kv.Next(ctx)
	if err != nil {
		return Batch{}, err
	}
	out := Batch{Rev: b.Rev}
	for _, key := range b.Keys {
		if p, ok := parsePlace(key); ok {
			out.Entries = append(out.Entries, p)
			continue
		}
		for _, prefix := range []string{"n/", "h/", "u/"} {
			if id, ok := parseID(key, prefix); ok && !slices.Contains(out.Inodes, id) {
				out.Inodes = append(out.Inodes, id)
			}
		}
	}
	return out, nil
}

// Close ends it.
func (w *Watcher) Close() { w.kv.Close() }
