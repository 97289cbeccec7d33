package kvtest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"memoryfs/backend/kv"
)

func limitCases() []testCase {
	return []testCase{
		{"CommitOverALimitHasNoEffect", tooLarge},
		{"CommitAtEveryLimitFits", atTheLimits},
		{"InvalidRequestsHaveNoEffect", invalidRequests},
		{"KeysAreAnyBytes", anyBytes},
	}
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func tooLarge(t *testing.T, s kv.Store) {
	f := with(t, s)
	caps := f.Caps()
	f.refuse(kv.ErrTooLarge, nil, kv.Put([]byte("a"), nil), kv.Put([]byte("b"), make([]byte, caps.MaxValueBytes+1)))
	ops := []kv.Op{kv.Put([]byte("a"), nil)}
	for size := 0; size <= caps.MaxCommitBytes; size += caps.MaxValueBytes / 2 {
		ops = append(ops, kv.Put(fmt.Append(nil, "b", size), make([]byte, caps.MaxValueBytes/2)))
	}
	f.refuse(kv.ErrTooLarge, nil, ops...)
	ops = ops[:1]
	for i := range caps.MaxCommitOps {
		ops = append(ops, kv.Delete(fmt.Append(nil, "c", i)))
	}
	f.refuse(kv.ErrTooLarge, nil, ops...)
	f.absent("a")
}

// Many full commits at once: an engine that writes them together must still fit its own transaction.
func atTheLimits(t *testing.T, s kv.Store) {
	f := with(t, s)
	caps := f.Caps()
	value := noise(caps.MaxValueBytes)
	f.commit(nil, kv.Put([]byte("max"), value))
	if got := f.get("max").Value; !bytes.Equal(got, value) {
		t.Fatalf("a value of %d bytes came back with %d", len(value), len(got))
	}
	var wg sync.WaitGroup
	for w := range 12 {
		wg.Go(func() { // as many operations as allowed, small and then filling the commit
			fill := 0
			if w%2 == 1 {
				fill = caps.MaxCommitBytes/caps.MaxCommitOps - 16
			}
			ops := make([]kv.Op, caps.MaxCommitOps)
			for i := range ops {
				ops[i] = kv.Put(fmt.Appendf(nil, "%02d/%08d", w, i), value[:min(max(fill, 0), len(value))])
			}
			if _, err := f.Commit(f.ctx, nil, ops); err != nil {
				t.Errorf("a commit at the limits: %v", err)
			}
		})
	}
	wg.Wait()
	if got := len(f.list(f.snap(), "", 1000)); got != 1+12*caps.MaxCommitOps {
		t.Fatalf("%d keys; want %d", got, 1+12*caps.MaxCommitOps)
	}
}

func invalidRequests(t *testing.T, s kv.Store) {
	f := with(t, s)
	ok := kv.Put([]byte("a"), nil)
	f.refuse(kv.ErrInvalid, nil)
	f.refuse(kv.ErrInvalid, nil, ok, kv.Op{})
	f.refuse(kv.ErrInvalid, nil, ok, kv.Op{Kind: 99, Key: []byte("b")})
	f.refuse(kv.ErrInvalid, nil, ok, kv.Put(nil, []byte("x")))
	f.refuse(kv.ErrInvalid, []kv.Guard{{}}, ok)
	f.refuse(kv.ErrInvalid, []kv.Guard{{Kind: 99, Key: []byte("a")}}, ok)
	f.refuse(kv.ErrInvalid, []kv.Guard{kv.KeyRev(nil, 0)}, ok)
	f.refuse(kv.ErrInvalid, []kv.Guard{kv.KeyExists(nil)}, ok)
	f.absent("a")
}

func anyBytes(t *testing.T, s kv.Store) {
	f := with(t, s)
	keys := []string{"\x00", "\x00\x00", "!", "!r", "!badger!", "!badger!txn", "k", "\xff", "\xff\xff\xff\xff\xff\xff\xff\xff\xff"}
	for _, k := range keys {
		f.commit([]kv.Guard{kv.KeyRev([]byte(k), 0)}, kv.Put([]byte(k), []byte(k)))
	}
	for _, k := range keys {
		f.want(k, k)
	}
	if got := f.list(f.snap(), "", 100); len(got) != len(keys) {
		t.Fatalf("the store lists %q", got)
	}
}
