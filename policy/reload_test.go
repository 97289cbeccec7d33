package policy

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Reloads under load: at every moment the decision is that of the policy before or after the swap, and what the
// revision says it was decided by (field case O32e).
func TestReloadUnderLoad(t *testing.T) {
	dir, registry := policyOf(t, permissive), sampleRegistry(t)
	file := filepath.Join(dir, "authz.rego")
	// In policy n, file n.md alone is refused.
	text := func(n int) string {
		return permissive + fmt.Sprintf("verdicts contains \"deny/%[1]d\" if input.file == \"%[1]d.md\"\n", n)
	}
	put(t, file, text(0))
	e := open(t, dir, registry)
	const reloads, callers = 100, 4
	var refuses sync.Map // revision -> n
	refuses.Store(e.Revision(), 0)
	var wrong, asked atomic.Int64
	var lastDenied atomic.Int64 // revisions are only compared once known; see below
	type seen struct {
		revision string
		n        int
		effect   Effect
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	records := make([][]seen, callers)
	for c := range callers {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				n := i % reloads
				d := e.Decide(context.Background(), Request{Caller: "alice", Action: ActionRead, Path: fmt.Sprintf("organization/%d.md", n)})
				asked.Add(1)
				if d.Cause != "" {
					wrong.Add(1)
				}
				if d.Effect == Deny {
					lastDenied.Store(int64(n))
				}
				if len(records[c]) < 200_000 {
					records[c] = append(records[c], seen{d.Revision, n, d.Effect})
				}
				if i%50 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	swaps := 0
	e.OnReload(func() { swaps++ })
	before := e.Generation()
	for n := 1; n <= reloads; n++ {
		put(t, file, text(n%reloads))
		if err := e.Reload(t.Context()); err != nil {
			t.Fatal(err)
		}
		refuses.Store(e.Revision(), n%reloads)
		// Counts from the next decision on.
		if d := e.Decide(t.Context(), Request{Caller: "alice", Action: ActionRead, Path: fmt.Sprintf("organization/%d.md", n%reloads)}); d.Effect != Deny {
			t.Fatalf("reload %d: %+v", n, d)
		}
		if n%10 == 0 { // a broken one in between changes nothing
			put(t, file, text(n)+"oops {")
			if err := e.Reload(t.Context()); !errors.Is(err, ErrPolicy) {
				t.Fatal(err)
			}
		}
	}
	stop()
	wg.Wait()
	for _, list := range records {
		for _, s := range list {
			n, known := refuses.Load(s.revision)
			if !known || (s.effect == Deny) != (n == s.n) {
				wrong.Add(1)
			}
		}
	}
	if wrong.Load() != 0 || asked.Load() < reloads {
		t.Fatalf("%d of %d decisions are wrong", wrong.Load(), asked.Load())
	}
	if swaps != reloads || e.Generation() != before+reloads {
		t.Fatalf("%d swaps, generation %d after %d", swaps, e.Generation(), before)
	}
}

func TestBrokenReloadKeepsTheOldOne(t *testing.T) {
	dir, registry := policyOf(t, permissive), sampleRegistry(t)
	e := open(t, dir, registry)
	file, revision := filepath.Join(dir, "authz.rego"), e.Revision()
	e.OnReload(func() { t.Error("nothing was swapped") })
	for name, breakIt := range map[string]func(){
		"policy":   func() { put(t, file, "oops {") },
		"allows":   func() { put(t, file, header+`verdicts contains "allow/x" if true`) },
		"empty":    func() { put(t, file, "") },
		"registry": func() { put(t, file, permissive); put(t, registry, "humans: 5\n") },
	} {
		breakIt()
		err := e.Reload(t.Context())
		if err == nil || !errors.Is(err, e.LastError()) {
			t.Errorf("%s: Reload %v, LastError %v", name, err, e.LastError())
		}
		if e.Revision() != revision || e.Generation() != 1 {
			t.Errorf("%s: it was swapped", name)
		}
		if d := e.Decide(t.Context(), readA); d.Effect != Allow || d.Revision != revision {
			t.Errorf("%s: %+v", name, d)
		}
	}
	put(t, file, permissive)
	put(t, registry, string(SampleRegistry("alice", 1000)))
	if err := e.Reload(t.Context()); err != nil || e.LastError() != nil || e.Generation() != 1 {
		t.Fatal(err, e.LastError(), e.Generation())
	}
}

// A right that the registry takes away is gone at the next decision, although it was cached.
func TestRegistryReloadRevokes(t *testing.T) {
	registry := sampleRegistry(t)
	e := open(t, defaultPolicy(t), registry)
	r := Request{Caller: "agent-104", Action: ActionRead, Path: "teams/engineering/a.md"}
	if d := e.Decide(t.Context(), r); d.Effect != Allow {
		t.Fatal(d)
	}
	put(t, registry, "humans:\n  - {id: bob, uids: [7]}\nagents:\n  - id: agent-104\nteams:\n  - {id: engineering, maintainers: [bob]}\n")
	if err := e.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := e.Decide(t.Context(), r); d.Effect != Deny {
		t.Fatal(d)
	}
	if _, ok := e.Principal("alice"); ok {
		t.Fatal("alice is still there")
	}
	if p, ok := e.PrincipalByUID(7); !ok || p.ID != "bob" || p.Kind != "human" {
		t.Fatal(p)
	}
	if all := e.Principals(); len(all) != 2 || all[0].ID != "agent-104" || all[1].ID != "bob" {
		t.Fatal(all)
	}
}

func TestReloadIsCancelled(t *testing.T) {
	e := open(t, defaultPolicy(t), sampleRegistry(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Reload(ctx); err == nil || e.Generation() != 1 {
		t.Fatal(err)
	}
}
