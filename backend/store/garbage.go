package store

import (
	"context"
	"errors"
	"time"

	"memoryfs/backend/kv"
)

// dropRef lets go of a blob in a commit: the mark makes sure that it is looked at, even after a crash.
func dropRef(sum Sum, size int64, id ID, n uint64) []kv.Op {
	if size == 0 {
		return nil
	}
	return []kv.Op{kv.Delete(keyRef(sum, id, n)), kv.Put(keyGarbage(sum), []byte{})}
}

func addRef(sum Sum, size int64, id ID, n uint64) []kv.Op {
	if size == 0 {
		return nil
	}
	return []kv.Op{kv.Put(keyRef(sum, id, n), []byte{})}
}

// collect deletes the marked blobs that nothing refers to. What it cannot do now stays marked.
func (s *Store) collect(ctx context.Context, sum Sum) error {
	for range maxTries {
		snap, err := s.kv.Snapshot(ctx)
		if err != nil {
			return err
		}
		refs, err := snap.List(prefixRef(sum), nil, 1)
		if err != nil {
			snap.Close()
			return err
		}
		if len(refs) > 0 {
			snap.Close()
			_, err := s.kv.Commit(ctx, nil, []kv.Op{kv.Delete(keyGarbage(sum))})
			return err
		}
		b, err := findBlob(snap, sum)
		snap.Close()
		ops := []kv.Op{kv.Delete(keyGarbage(sum)), kv.Delete(keyBlob(sum))}
		var below []Sum
		if err == nil {
			seen := map[Sum]bool{}
			for _, c := range b.chunks {
				if !seen[c] {
					seen[c] = true
					below = append(below, c)
					ops = append(ops, kv.Delete(keyChunkRef(c, sum)), kv.Put(keyGarbage(c), []byte{}))
				}
			}
		}
		_, err = s.kv.Commit(ctx, []kv.Guard{kv.PrefixEmpty(prefixRef(sum))}, ops)
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		if b.onDisk && s.files != nil {
			if err := s.files.remove(sum, b.tag); err != nil {
				return err
			}
		}
		for _, c := range below {
			if err := s.collect(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// collectMarked works off every mark: at the start, before anything can be in flight.
func (s *Store) collectMarked(ctx context.Context) error {
	for {
		snap, err := s.kv.Snapshot(ctx)
		if err != nil {
			return err
		}
		page, err := snap.List([]byte("g/"), nil, pageSize)
		snap.Close()
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			if sum, ok := parseSum(e.Key, "g/"); ok {
				if err := s.collect(ctx, sum); err != nil {
					return err
				}
			}
		}
	}
}

// later hands a blob to the collector; when it is too far behind, the mark is left for the next start.
func (s *Store) later(sums ...Sum) {
	for _, sum := range sums {
		select {
		case s.garbage <- sum:
		default:
		}
	}
}

func (s *Store) collector(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case sum := <-s.garbage:
			_ = s.collect(ctx, sum) // stays marked; the next start tries again
		}
	}
}

// SweepEphemerals removes ephemerals that nobody has written or renamed since t. It returns how many.
func (s *Store) SweepEphemerals(ctx context.Context, t time.Time) (int, error) {
	var after []byte
	n := 0
	for {
		snap, err := s.Snapshot(ctx)
		if err != nil {
			return n, err
		}
		page, err := snap.kv.List([]byte("e/"), after, pageSize)
		if err != nil {
			snap.Close()
			return n, err
		}
		var old []Place
		for _, e := range page {
			after = e.Key
			if p, ok := parsePlace(e.Key); ok && snap.unusedSince(p, t) {
				old = append(old, p)
			}
		}
		snap.Close()
		for _, p := range old {
			if _, _, err := s.Unlink(ctx, p, Base{Any: true}, Change{}); err != nil && !errors.Is(err, ErrNotExist) {
				return n, err
			}
			n++
		}
		if len(page) < pageSize {
			return n, nil
		}
	}
}

// unusedSince also holds for an ephemeral whose directory is gone.
func (p *Snapshot) unusedSince(at Place, t time.Time) bool {
	d, err := p.Child(at)
	if err != nil {
		return false
	}
	if _, err := p.Inode(at.Parent); errors.Is(err, ErrNotExist) {
		return true
	}
	in, err := p.Inode(d.ID)
	if err != nil {
		return false
	}
	last := in.Ctime
	if h, err := p.Head(d.ID); err == nil && h.Mtime.After(last) {
		last = h.Mtime
	}
	return last.Before(t)
}
