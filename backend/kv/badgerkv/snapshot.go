package badgerkv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"

	"github.com/dgraph-io/badger/v4"

	"memoryfs/backend/kv"
)

// snapshot reads at one revision. Badger's read transactions are not for concurrent use, so a mutex.
type snapshot struct {
	s   *Store
	rev kv.Rev

	mu  sync.Mutex
	txn *badger.Txn // nil: closed
}

// Snapshot opens the published state.
func (s *Store) Snapshot(ctx context.Context) (kv.Snapshot, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("snapshot: %w: %w", kv.ErrUnavailable, kv.ErrClosed)
	}
	s.active[s.published]++
	return &snapshot{s: s, rev: s.published, txn: s.db.NewTransactionAt(uint64(s.published), false)}, nil
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

func (p *snapshot) Get(keys ...[]byte) ([]kv.Entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.txn == nil {
		return nil, kv.ErrClosed
	}
	out := make([]kv.Entry, len(keys))
	for i, key := range keys {
		out[i].Key = bytes.Clone(key)
		item, err := p.txn.Get(dbKey(key))
		if errors.Is(err, badger.ErrKeyNotFound) {
			continue
		}
		if err == nil {
			err = fill(&out[i], item)
		}
		if err != nil {
			return nil, fmt.Errorf("get %q: %w", key, err)
		}
	}
	return out, nil
}

func fill(e *kv.Entry, item *badger.Item) error {
	return item.Value(func(b []byte) error {
		if len(b) < revSize {
			return kv.ErrCorrupt
		}
		e.Rev = kv.Rev(binary.BigEndian.Uint64(b))
		e.Value = append(make([]byte, 0, len(b)-revSize), b[revSize:]...)
		return nil
	})
}

func (p *snapshot) List(prefix, after []byte, limit int) ([]kv.Entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.txn == nil {
		return nil, kv.ErrClosed
	}
	if limit <= 0 {
		return nil, fmt.Errorf("%w: limit %d", kv.ErrInvalid, limit)
	}
	full := dbKey(prefix)
	opts := badger.IteratorOptions{Prefix: full, PrefetchValues: true, PrefetchSize: min(limit, 100)}
	it := p.txn.NewIterator(opts)
	defer it.Close()
	from := full
	if bytes.Compare(after, prefix) >= 0 && after != nil {
		from = append(dbKey(after), 0) // the next possible key
	}
	var out []kv.Entry
	for it.Seek(from); it.ValidForPrefix(full) && len(out) < limit; it.Next() {
		item := it.Item()
		e := kv.Entry{Key: bytes.Clone(item.Key()[1:])}
		if err := fill(&e, item); err != nil {
			return nil, fmt.Errorf("list %q: %w", e.Key, err)
		}
		out = append(out, e)
	}
	return out, nil
}
