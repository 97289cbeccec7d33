package badgerkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"memoryfs/backend/kv"
)

// snapshot reads at one revision. Badger's read-only transactions may be read concurrently, but not while discarded.
type snapshot struct {
	s   *Store
	rev kv.Rev

	mu  sync.RWMutex // read: in use; write: Close
	txn *badger.Txn  // nil: closed
}

// Snapshot opens the published state.
func (s *Store) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var p *snapshot
	err := s.use(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.active[s.published]++
		p = &snapshot{s: s, rev: s.published, txn: s.db.NewTransactionAt(uint64(s.published), false)}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", unsent(err))
	}
	return p, nil
}

func (p *snapshot) Rev() kv.Rev { return p.rev }

func (p *snapshot) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.txn == nil {
		return
	}
	p.txn.Discard()
	p.txn = nil
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.s.active[p.rev]--; p.s.active[p.rev] == 0 {
		delete(p.s.active, p.rev)
	}
}

// read runs fn while neither the snapshot nor the store can be closed.
func (p *snapshot) read(fn func(*badger.Txn) error) error {
	return p.s.use(func() error {
		p.mu.RLock()
		defer p.mu.RUnlock()
		if p.txn == nil {
			return kv.ErrClosed
		}
		return translate(fn(p.txn))
	})
}

func (p *snapshot) Get(keys ...[]byte) ([]kv.Entry, error) {
	out := make([]kv.Entry, len(keys))
	err := p.read(func(txn *badger.Txn) error {
		for i, key := range keys {
			out[i].Key = bytes.Clone(key)
			item, err := txn.Get(dbKey(key))
			if errors.Is(err, badger.ErrKeyNotFound) {
				continue
			}
			if err == nil {
				err = fill(&out[i], item)
			}
			if err != nil {
				return fmt.Errorf("get %q: %w", key, err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func fill(e *kv.Entry, item *badger.Item) error {
	return item.Value(func(b []byte) (err error) {
		if e.Rev, err = revOf(b); err == nil {
			e.Value = append(make([]byte, 0, len(b)-revSize), b[revSize:]...)
		}
		return err
	})
}

func (p *snapshot) List(prefix, after []byte, limit int) ([]kv.Entry, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("%w: limit %d", kv.ErrInvalid, limit)
	}
	full := dbKey(prefix)
	from := full
	if after != nil && bytes.Compare(after, prefix) >= 0 {
		from = append(dbKey(after), 0) // the next possible key
	}
	var out []kv.Entry
	err := p.read(func(txn *badger.Txn) error {
		// No prefetch: values are in the tables, and Badger's prefetch is a goroutine for each.
		it := txn.NewIterator(badger.IteratorOptions{Prefix: full})
		defer it.Close()
		for it.Seek(from); it.ValidForPrefix(full) && len(out) < limit; it.Next() {
			item := it.Item()
			e := kv.Entry{Key: bytes.Clone(item.Key()[1:])}
			if err := fill(&e, item); err != nil {
				return fmt.Errorf("list %q: %w", e.Key, err)
			}
			out = append(out, e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
