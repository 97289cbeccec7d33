package audit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func BenchmarkAppend(b *testing.B) {
	for _, writers := range []int{1, 256} {
		b.Run(fmt.Sprint(writers, " writers"), func(b *testing.B) {
			l, err := Open(context.Background(), b.TempDir(), &fakeStore{}, Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close(context.Background())
			b.ReportAllocs()
			b.SetParallelism(max(1, writers/runtime.GOMAXPROCS(0)))
			if writers == 1 {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := l.Append(context.Background(), Record{Time: time.Now(), Kind: "mount", Op: "mount"}); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
		})
	}
}

// BenchmarkIntents takes over what a store has.
func BenchmarkIntents(b *testing.B) {
	src := &fakeStore{}
	for range b.N {
		src.commit(b, "0190b2c4-0000-7000-8000-000000000001", src.rev+1)
	}
	l, err := Open(context.Background(), b.TempDir(), src, Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close(context.Background())
	b.ResetTimer()
	must(b, l.Sync(context.Background(), src.rev))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkVerify is for a log of 300,000 versions; an operation is one run over all of it.
func BenchmarkVerify(b *testing.B) {
	const n = 300_000
	dir := b.TempDir()
	var buf []byte
	for i := range uint64(n) {
		line, err := Marshal(Record{Rev: i + 1, Time: time.Now(), Kind: "change", Op: "write", OpID: opOf(i + 1), Path: "projects/billing/status.md",
			Memory: opOf(i / 3), Version: i%3 + 1, Commit: Commitment([16]byte{}, [32]byte{}), Principal: "agent-104", Reason: "a reason of some words"})
		must(b, err)
		buf = number(buf, i+1, line)
	}
	must(b, os.WriteFile(filepath.Join(dir, segmentName(1)), buf, 0o600))
	var live uint64
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	buf = nil
	empty := heap()
	all := func(yield func(Fact, error) bool) {
		live = heap() - empty // what Verify keeps of the log
		for i := range uint64(n) {
			if !yield(Fact{Memory: opOf(i / 3), Version: i%3 + 1, Commit: Commitment([16]byte{}, [32]byte{})}, nil) {
				return
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := Verify(context.Background(), dir, all, nil, n)
		if err != nil || len(r.Problems) > 0 || r.Versions != n {
			b.Fatalf("%+v %v", r, err)
		}
	}
	b.ReportMetric(float64(live)/(1<<20), "live-MiB")
}
