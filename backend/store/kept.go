package store

import (
	"context"
	"errors"
	"fmt"

	"memoryfs/backend/kv"
)

// Kept is what is kept for one principal beside the tree, for example the bytes of a stale write: no memory, no version,
// and nobody else's. Its contents are blobs like all others and are collected when it goes.
type Kept struct {
	Owner string // principal
	ID    ID
	Note  []byte // the caller's own
	Parts []Part
}

// Part is one content of a Kept.
type Part struct {
	Sum  Sum
	Size int64
}

const formKept = 1

func keyKept(owner string, id ID) []byte { return cat(prefixKept(owner), id[:]) }

// prefixKept: a principal's id has no NUL, as it comes from the registry.
func prefixKept(owner string) []byte { return cat([]byte("c/"), []byte(owner), []byte{0}) }

func encodeKept(k Kept) []byte {
	w := &writer{}
	w.byte(formKept)
	w.uint(uint64(len(k.Parts)))
	for _, p := range k.Parts {
		w.raw(p.Sum[:])
		w.uint(uint64(p.Size))
	}
	w.bytes(k.Note)
	return w.b
}

func decodeKept(owner string, id ID, b []byte) (Kept, error) {
	k := Kept{Owner: owner, ID: id}
	r := &reader{b: b}
	if r.byte() != formKept {
		r.bad = true
	}
	for n := r.uint(); n > 0 && !r.bad; n-- {
		k.Parts = append(k.Parts, Part{r.sum(), int64(r.uint())})
	}
	k.Note = r.bytes()
	return k, r.end("kept " + id.String())
}

// parseKept undoes keyKept.
func parseKept(key []byte) (owner string, id ID, ok bool) {
	n := len(key) - 16
	if n < 4 || key[n-1] != 0 || string(key[:2]) != "c/" {
		return "", id, false
	}
	return string(key[2 : n-1]), ID(key[n:]), true
}

// Keep puts a Kept, in place of one with the same owner and id. note is given the parts, whose hashes are known only now.
func (s *Store) Keep(ctx context.Context, owner string, id ID, contents []Bytes, note func([]Part) ([]byte, error)) (Kept, error) {
	k := Kept{Owner: owner, ID: id}
	_, err := s.run(ctx, Change{}, func(snap *Snapshot) (*plan, error) {
		p := &plan{}
		old, rev, err := snap.kept(owner, id)
		if err != nil && !errors.Is(err, ErrNotExist) {
			return nil, err
		}
		p.guard(kv.KeyRev(keyKept(owner, id), rev))
		p.dropParts(old)
		k.Parts = nil
		for i, c := range contents {
			st, err := s.put(ctx, c)
			if err != nil {
				return nil, err
			}
			p.guards = append(p.guards, st.guards...)
			p.put(st.ops...)
			p.put(addRef(st.sum, st.size, id, uint64(i))...)
			k.Parts = append(k.Parts, Part{st.sum, st.size})
		}
		if k.Note, err = note(k.Parts); err != nil {
			return nil, err
		}
		p.put(kv.Put(keyKept(owner, id), encodeKept(k)))
		return p, nil
	})
	return k, err
}

func (p *plan) dropParts(k Kept) {
	for i, part := range k.Parts {
		p.drop(part.Sum, part.Size, k.ID, uint64(i))
	}
}

// Drop removes a Kept. ErrNotExist.
func (s *Store) Drop(ctx context.Context, owner string, id ID) error {
	_, err := s.run(ctx, Change{}, func(snap *Snapshot) (*plan, error) {
		k, rev, err := snap.kept(owner, id)
		if err != nil {
			return nil, err
		}
		p := &plan{}
		p.guard(kv.KeyRev(keyKept(owner, id), rev))
		p.put(kv.Delete(keyKept(owner, id)))
		p.dropParts(k)
		return p, nil
	})
	return err
}

func (p *Snapshot) kept(owner string, id ID) (Kept, kv.Rev, error) {
	e, err := p.get(keyKept(owner, id))
	if err != nil {
		return Kept{}, 0, err
	}
	if e.Rev == 0 {
		return Kept{}, 0, fmt.Errorf("kept %s: %w", id, ErrNotExist)
	}
	k, err := decodeKept(owner, id, e.Value)
	return k, e.Rev, err
}

// Kept lists what is kept for a principal, oldest first.
func (p *Snapshot) Kept(owner string) ([]Kept, error) { return p.listKept(prefixKept(owner)) }

// AllKept lists what is kept for every principal.
func (p *Snapshot) AllKept() ([]Kept, error) { return p.listKept([]byte("c/")) }

func (p *Snapshot) listKept(prefix []byte) ([]Kept, error) {
	var out []Kept
	var after []byte
	for {
		page, err := p.kv.List(prefix, after, pageSize)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			after = e.Key
			owner, id, ok := parseKept(e.Key)
			if !ok {
				return nil, fmt.Errorf("key %q: %w", e.Key, ErrCorrupt)
			}
			k, err := decodeKept(owner, id, e.Value)
			if err != nil {
				return nil, err
			}
			out = append(out, k)
		}
		if len(page) < pageSize {
			return out, nil
		}
	}
}
