package policy

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
)

// Whatever is asked in whatever order, the cached answer is the one that the policy gives.
func TestCacheAnswersAsThePolicyDoes(t *testing.T) {
	e := open(t, defaultPolicy(t), sampleRegistry(t))
	s := e.current.Load()
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	for range 4000 {
		r := Request{Caller: pick("alice", "reviewer", "agent-104", "agent-205", "ghost", ""),
			Action:    Action(pick("list", "read", "write", "create", "delete", "mount", "admin", "", "nonsense")),
			Path:      pick("", "teams", "organization", "users", "projects", "agents", "customers", "skills", "elsewhere"),
			Dir:       rnd.IntN(2) == 0,
			Ephemeral: rnd.IntN(4) == 0,
			Target:    pick("", "", "alice", "agent-104", "ghost"),
			Commit:    rnd.IntN(2) == 0, Size: rnd.Int64N(3), BaseNone: rnd.IntN(2) == 0,
			Attested: Attested{Mount: pick("/a", "/b"), Shared: rnd.IntN(2) == 0, UID: rnd.Uint32N(2)},
			Claimed:  Claimed{Reason: pick("", "x")},
		}
		for range rnd.IntN(4) {
			r.Path += "/" + pick("engineering", "alice", "agent-104", "billing-redesign", "incidents", "current-status.md", "acme", "a\xff", "..", "")
		}
		got := e.Decide(t.Context(), r)
		want := s.decision(s.ask(t.Context(), r.place()))
		got.ID, want.ID = "", ""
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %+v: cached %+v, asked %+v", seed, r, got, want)
		}
	}
}

// Two paths that look alike when printed are two keys and two strings of Rego.
func TestPathsOfOddBytesAreKeptApart(t *testing.T) {
	e := open(t, policyOf(t, permissive+`
verdicts contains "deny/x" if input.name == "a\\xff"
verdicts contains "deny/y" if input.name == "\uFFFD"
`), sampleRegistry(t))
	for range 2 {
		for path, want := range map[string]Effect{
			"organization/a\xff":   Deny,  // the byte
			`organization/a\xff`:   Allow, // four characters: its backslash is doubled
			"organization/a\xfe":   Allow,
			"organization/a\uFFFD": Allow,
			"organization/\uFFFD":  Deny,
			"organization/\xff":    Allow, // no replacement on the way
		} {
			if d := e.Decide(t.Context(), Request{Caller: "alice", Action: ActionRead, Path: path}); d.Effect != want {
				t.Errorf("%q: %+v", path, d)
			}
		}
	}
}

// The key holds what the policy reads, and nothing else.
func TestCacheKeyHoldsWhatThePolicyReads(t *testing.T) {
	base := Request{Caller: "alice", Action: ActionWrite, Path: "organization/a.md"}
	variants := map[string]func(*Request){
		"claimed":  func(r *Request) { r.Claimed.Conversation = "c" },
		"attested": func(r *Request) { r.Attested.UID = 7 },
		"size":     func(r *Request) { r.Size = 7 },
		"base":     func(r *Request) { r.BaseNone = true },
		"commit":   func(r *Request) { r.Commit = true },
	}
	rules := map[string]string{"claimed": `input.claimed.conversation == "c"`, "attested": `input.attested.uid == 7`,
		"size": `input.size == 7`, "base": `input.base_none`, "commit": `input.commit`}
	for name, rule := range rules {
		e := open(t, policyOf(t, permissive+"verdicts contains \"deny/x\" if "+rule), sampleRegistry(t))
		for range 2 {
			if d := e.Decide(t.Context(), base); d.Effect != Allow {
				t.Errorf("%s: %+v", name, d)
			}
			for other, change := range variants {
				r := base
				change(&r)
				want := Allow
				if other == name {
					want = Deny
				}
				if d := e.Decide(t.Context(), r); d.Effect != want {
					t.Errorf("policy on %s, request of another %s: %+v", name, other, d)
				}
			}
		}
		if n := cached(e.current.Load()); n != 2 {
			t.Errorf("policy on %s: %d entries, want 2", name, n)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache()
	for i := range cacheSlots + cacheSlots/2 {
		k := key{caller: "a", path: fmt.Sprint("teams/x/", i), action: 1}
		h := c.hash(&k)
		c.put(h, k, &answer{effect: Allow, rules: []string{"allow/x"}})
		if a := c.get(h, &k); a == nil || a.effect != Allow {
			t.Fatalf("%d is not there", i)
		}
	}
	if len(c.slots) != cacheSlots || len(c.interned) != 1 {
		t.Fatalf("%d slots, %d answers", len(c.slots), len(c.interned))
	}
	for i := range maxAnswers * 2 {
		c.intern(&answer{cause: fmt.Sprint(i)})
	}
	if len(c.interned) > maxAnswers {
		t.Fatal(len(c.interned))
	}
}

// Two keys of one hash are still two keys.
func TestCacheComparesKeysNotHashes(t *testing.T) {
	c := newCache()
	k := key{caller: "a", path: "teams/x", action: 1}
	c.put(7, k, &answer{effect: Allow})
	for _, other := range []key{{caller: "b", path: "teams/x", action: 1}, {caller: "a", path: "teams/y", action: 1},
		{caller: "a", path: "teams/x", action: 2}, {caller: "a", path: "teams/x", action: 1, dir: true}, {caller: "a", path: "teams/x", action: 1, extra: "e"}} {
		if c.get(7, &other) != nil {
			t.Errorf("%+v has the answer of %+v", other, k)
		}
	}
	if c.get(7, &k) == nil {
		t.Error("the key itself has none")
	}
}

func TestDecisionIDsAreUnique(t *testing.T) {
	dir, registry := defaultPolicy(t), sampleRegistry(t)
	e := open(t, dir, registry)
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 2000 {
				d := e.Decide(context.Background(), Request{Caller: "alice", Action: ActionRead, Path: fmt.Sprint("organization/", i%10)})
				mu.Lock()
				if seen[d.ID] {
					t.Errorf("%s twice", d.ID)
				}
				seen[d.ID] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
