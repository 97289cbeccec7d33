// Package kvtest is the suite that every engine of package kv passes: the contract in the doc of kv, as cases.
//
// Run it on a fresh, empty store for each case. Model is the same as one random walk against a map; give it a Draw of a
// shrinking property tester where there is one.
package kvtest

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"memoryfs/backend/kv"
)

// New makes an empty store for one case. Run closes it; New reports its own failures to t.
type New func(t *testing.T) kv.Store

type testCase struct {
	name string
	run  func(t *testing.T, s kv.Store)
}

// Run runs every case on a store of its own. An engine fails it if it keeps any promise of package kv less than fully.
func Run(t *testing.T, open New) {
	for _, group := range [][]testCase{commitCases(), guardCases(), readCases(), watchCases(), limitCases(), lifeCases()} {
		for _, c := range group {
			t.Run(c.name, func(t *testing.T) {
				s := open(t)
				t.Cleanup(func() { s.Close() })
				c.run(t, s)
			})
		}
	}
	t.Run("RandomWalk", func(t *testing.T) {
		for range 5 {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 0))
			s := open(t)
			Model(t, s, func(_ string, n int) int { return r.IntN(n) }, 300)
			s.Close()
		}
	})
}

// fixture is a store with the checks that the cases share.
type fixture struct {
	testing.TB
	kv.Store
	ctx context.Context
}

func with(t *testing.T, s kv.Store) *fixture {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return &fixture{TB: t, Store: s, ctx: ctx}
}

// commit must succeed.
func (f *fixture) commit(guards []kv.Guard, ops ...kv.Op) kv.Rev {
	f.Helper()
	rev, err := f.Commit(f.ctx, guards, ops)
	if err != nil {
		f.Fatalf("commit: %v", err)
	}
	return rev
}

// put must succeed.
func (f *fixture) put(key, value string) kv.Rev {
	f.Helper()
	return f.commit(nil, kv.Put([]byte(key), []byte(value)))
}

// refuse must fail with want and have no effect on the revision.
func (f *fixture) refuse(want error, guards []kv.Guard, ops ...kv.Op) {
	f.Helper()
	before := f.rev()
	rev, err := f.Commit(f.ctx, guards, ops)
	if !is(err, want) {
		f.Fatalf("commit: revision %d, %v; want %v", rev, err, want)
	}
	if after := f.rev(); after != before {
		f.Fatalf("a refused commit moved the revision from %d to %d", before, after)
	}
}

// snap is closed at the end of the test.
func (f *fixture) snap() kv.Snapshot {
	f.Helper()
	p, err := f.Snapshot(f.ctx)
	if err != nil {
		f.Fatalf("snapshot: %v", err)
	}
	f.Cleanup(p.Close)
	return p
}

func (f *fixture) rev() kv.Rev {
	f.Helper()
	p := f.snap()
	defer p.Close()
	return p.Rev()
}

// get reads one key as of now.
func (f *fixture) get(key string) kv.Entry {
	f.Helper()
	p := f.snap()
	defer p.Close()
	return f.getIn(p, key)
}

func (f *fixture) getIn(p kv.Snapshot, key string) kv.Entry {
	f.Helper()
	e, err := p.Get([]byte(key))
	if err != nil || len(e) != 1 || string(e[0].Key) != key {
		f.Fatalf("get %q: %v, %v", key, e, err)
	}
	return e[0]
}

// want checks a key's value and presence.
func (f *fixture) want(key, value string) kv.Entry {
	f.Helper()
	e := f.get(key)
	if e.Rev == 0 || string(e.Value) != value {
		f.Fatalf("%q is %q at %d; want %q", key, e.Value, e.Rev, value)
	}
	return e
}

func (f *fixture) absent(key string) {
	f.Helper()
	if e := f.get(key); e.Rev != 0 || len(e.Value) != 0 {
		f.Fatalf("%q is %q at %d; want it absent", key, e.Value, e.Rev)
	}
}

// list is all the keys under prefix, read in pages.
func (f *fixture) list(p kv.Snapshot, prefix string, page int) []string {
	f.Helper()
	var keys []string
	var after []byte
	for {
		es, err := p.List([]byte(prefix), after, page)
		if err != nil {
			f.Fatalf("list %q after %q: %v", prefix, after, err)
		}
		for _, e := range es {
			keys, after = append(keys, string(e.Key)), e.Key
		}
		if len(es) < page {
			return keys
		}
	}
}
