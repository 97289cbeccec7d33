package policy

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
)

func benchEngine(b *testing.B) *Engine {
	file := filepath.Join(b.TempDir(), "identities.yaml")
	put(b, file, crowd(1000))
	return open(b, defaultPolicy(b), file)
}

func BenchmarkDecideCached(b *testing.B) {
	e := benchEngine(b)
	ctx := context.Background()
	r := Request{Caller: "agent-500", Action: ActionRead, Path: "teams/team-50/architecture.md", Attested: Attested{Mount: "/mnt/memory"},
		Claimed: Claimed{Session: "s", Reason: "why"}}
	if d := e.Decide(ctx, r); d.Effect != Allow {
		b.Fatal(d)
	}
	b.ReportAllocs()
	for b.Loop() {
		e.Decide(ctx, r)
	}
}

func BenchmarkDecideCachedParallel(b *testing.B) {
	e := benchEngine(b)
	ctx := context.Background()
	r := Request{Caller: "agent-500", Action: ActionRead, Path: "teams/team-50/architecture.md", Attested: Attested{Mount: "/mnt/memory"}}
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			e.Decide(ctx, r)
		}
	})
}

func BenchmarkDecideUncached(b *testing.B) {
	for _, bc := range []struct{ name, caller, path string }{
		{"allow", "agent-500", "teams/team-50/n%d.md"},
		{"deny", "agent-500", "teams/team-7/n%d.md"},
		{"organization", "agent-500", "organization/n%d.md"},
	} {
		b.Run(bc.name, func(b *testing.B) {
			e := benchEngine(b)
			ctx := context.Background()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i++
				e.Decide(ctx, Request{Caller: bc.caller, Action: ActionRead, Path: fmt.Sprintf(bc.path, i)})
			}
		})
	}
}

// BenchmarkOpen is a whole load: parse, compile, the policy's tests, the probe.
func BenchmarkOpen(b *testing.B) {
	dir, file := defaultPolicy(b), filepath.Join(b.TempDir(), "identities.yaml")
	put(b, file, crowd(1000))
	for b.Loop() {
		e, err := Open(b.Context(), Options{PolicyDir: dir, RegistryFile: file})
		if err != nil {
			b.Fatal(err)
		}
		_ = e.Close()
	}
}
