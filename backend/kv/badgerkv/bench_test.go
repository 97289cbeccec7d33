package badgerkv

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"memoryfs/backend/kv"
)

// Durable commits of about one note's metadata, guarded as a write is. On a disk with a slow fsync, 64 writers are worth
// many times one.
func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(writers, "-writers"), func(b *testing.B) {
			s := open(b, b.TempDir(), Options{})
			ctx := context.Background()
			record := make([]byte, 300)
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					head := fmt.Appendf(nil, "h/%016d", w)
					rev := kv.Rev(0)
					for i := left.Add(-1); i >= 0; i = left.Add(-1) {
						var err error
						rev, err = s.Commit(ctx, []kv.Guard{kv.KeyRev(head, rev)}, []kv.Op{
							kv.Put(head, record[:80]),
							kv.Put(fmt.Appendf(nil, "v/%016d/%08d", w, i), record),
							kv.Put(fmt.Appendf(nil, "a/i/%016d", i), record),
						})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commits/s")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	s := open(b, b.TempDir(), Options{})
	ctx := context.Background()
	const n = 50_000
	for i := 0; i < n; i += 500 {
		ops := make([]kv.Op, 500)
		for j := range ops {
			ops[j] = kv.Put(fmt.Appendf(nil, "d/%08d", i+j), value("x", 200))
		}
		if _, err := s.Commit(ctx, nil, ops); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("SnapshotGet", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			p, err := s.Snapshot(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if e, err := p.Get(fmt.Appendf(nil, "d/%08d", i*7919%n)); err != nil || e[0].Rev == 0 {
				b.Fatal(e, err)
			}
			p.Close()
		}
	})
	b.Run("List100", func(b *testing.B) {
		p, err := s.Snapshot(ctx)
		if err != nil {
			b.Fatal(err)
		}
		defer p.Close()
		for i := 0; b.Loop(); i++ {
			after := fmt.Appendf(nil, "d/%08d", i*7919%(n-200))
			if es, err := p.List([]byte("d/"), after, 100); err != nil || len(es) != 100 {
				b.Fatal(len(es), err)
			}
		}
	})
}
