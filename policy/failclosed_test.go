package policy

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
)

const header = "package memory.authz\n"

// permissive allows every enabled principal everything: what the rules of a test are added to.
const permissive = header + `
verdicts contains "allow/all" if input.caller.known
`

var readA = Request{Caller: "alice", Action: ActionRead, Path: "organization/a.md"}

// A policy that loads, and in which something goes wrong at the decision: always a denial with its cause, never cached.
func TestDecisionFailsClosed(t *testing.T) {
	for name, tc := range map[string]struct{ policy, cause string }{
		"no rule speaks":               {header + `verdicts contains "allow/x" if input.path == "elsewhere"`, "no rule allows"},
		"builtin fails in a denial":    {permissive + `verdicts contains "deny/x" if to_number(input.file) > 3`, "policy error"},
		"builtin fails in a helper":    {permissive + "big if to_number(input.file) > 3\n" + `verdicts contains "deny/x" if big`, "policy error"},
		"builtin fails in a condition": {permissive + `verdicts contains "deny/x" if not to_number(input.file)`, "policy error"},
		"unknown effect":               {permissive + `verdicts contains "permit/x" if input.caller.known`, "is no verdict"},
		"effect of another case":       {permissive + `verdicts contains "Allow/x" if input.caller.known`, "is no verdict"},
		"no rule id":                   {permissive + `verdicts contains "allow/" if input.caller.known`, "is no verdict"},
		"no slash":                     {permissive + `verdicts contains "allow" if input.caller.known`, "is no verdict"},
		"empty verdict":                {permissive + `verdicts contains "" if input.caller.known`, "is no verdict"},
		"verdict a number":             {permissive + `verdicts contains 1 if input.caller.known`, "is no verdict"},
		"verdict null":                 {permissive + `verdicts contains null if input.caller.known`, "is no verdict"},
		"verdict an object":            {permissive + `verdicts contains {"allow": true} if input.caller.known`, "is no verdict"},
		"conflict in a helper":         {permissive + "limit := 1 if input.caller.known\nlimit := 2 if input.dir == false\n" + `verdicts contains "deny/x" if limit > 5`, "policy error"},
		"endless":                      {permissive + `verdicts contains "deny/x" if { input.file == "a.md"; some i in numbers.range(1, 100000000); some j in numbers.range(1, 100000000); i * j < 0 }`, "no decision within"},
		"obligation unknown":           {permissive + `obligations[k] := true if { input.caller.known; some k in ["reason", "resaon"] }`, "no obligation"},
		"obligation of another type":   {permissive + `obligations["reason"] := "yes" if input.caller.known`, "no obligation"},
		"obligation negative":          {permissive + `obligations["max_bytes"] := -1 if input.caller.known`, "no obligation"},
		"obligation no whole number":   {permissive + `obligations["max_bytes"] := 1.5 if input.caller.known`, "no obligation"},
		"obligations a string":         {permissive + `obligations := "none" if input.caller.known`, "not an object"},
		"obligations undefined":        {permissive + `obligations := {"reason": true} if input.dir`, "undefined"},
		"obligations conflict":         {permissive + "obligations[\"max_bytes\"] := 1 if input.caller.known\nobligations[\"max_bytes\"] := 2 if input.scope == \"organization\"", "policy error"},
	} {
		t.Run(name, func(t *testing.T) {
			timeout := patience
			if name == "endless" {
				timeout = 30 * time.Millisecond
			}
			dir := policyOf(t, tc.policy)
			e, err := Open(t.Context(), Options{PolicyDir: dir, RegistryFile: sampleRegistry(t), Timeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				began := time.Now()
				d := e.Decide(t.Context(), readA)
				if d.Effect != Deny || !strings.Contains(d.Cause, tc.cause) || d.ID == "" || d.Revision != e.Revision() {
					t.Fatalf("%+v, want a denial with %q", d, tc.cause)
				}
				if spent := time.Since(began); spent > patience {
					t.Fatalf("it took %v", spent)
				}
			}
			if s := e.current.Load(); strings.HasPrefix(tc.cause, "policy error") && cached(s) != 0 {
				t.Fatal("the error is cached")
			}
		})
	}
}

func cached(s *snapshot) (n int) {
	for i := range s.cache.slots {
		if s.cache.slots[i].Load() != nil {
			n++
		}
	}
	return n
}

// Obligations by single rules, and as one object, come out the same.
func TestObligations(t *testing.T) {
	want := Obligations{Reason: true, AuditRead: true, MaxBytes: 7, FreshBase: true}
	for name, text := range map[string]string{
		"single rules": `
obligations["reason"] := true if input.scope == "organization"
obligations["audit_read"] := true if input.action == "read"
obligations.max_bytes := 7 if input.caller.known
obligations.fresh_base := true if input.caller.known
obligations.fresh_base := false if input.scope == "teams"`,
		"one object":   `obligations := {"reason": true, "audit_read": true, "max_bytes": 7, "fresh_base": true}`,
		"computed key": `obligations[k] := v if some k, v in {"reason": true, "audit_read": true, "max_bytes": 7, "fresh_base": true}`,
	} {
		e := open(t, policyOf(t, permissive+text), sampleRegistry(t))
		for range 2 {
			if d := e.Decide(t.Context(), readA); d.Effect != Allow || d.Obligations != want {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
	e := open(t, policyOf(t, permissive), sampleRegistry(t))
	if d := e.Decide(t.Context(), readA); d.Effect != Allow || d.Obligations != (Obligations{}) {
		t.Errorf("none: %+v", d)
	}
}

// A reading of what concerns a customer is to be recorded, in the default policy.
func TestCustomerReadsAreAudited(t *testing.T) {
	e := open(t, defaultPolicy(t), sampleRegistry(t))
	for path, want := range map[string]bool{"customers/acme/contract.md": true, "teams/engineering/a.md": false} {
		if d := e.Decide(t.Context(), Request{Caller: "agent-104", Action: ActionRead, Path: path}); d.Effect != Allow || d.Obligations.AuditRead != want {
			t.Errorf("%s: %+v", path, d)
		}
	}
}

// What a policy of another shape would answer, were it served.
func TestFoldFailsClosed(t *testing.T) {
	for name, v := range map[string]ast.Value{
		"undefined": nil, "null": ast.Null{}, "true": ast.Boolean(true), "a string": ast.String("allow/x"), "an object": ast.NewObject(),
		"an array": ast.NewArray(ast.StringTerm("allow/x")), "a number": ast.Number("1"),
		"a set in a set": ast.NewSet(ast.NewTerm(ast.NewSet(ast.StringTerm("allow/x")))),
	} {
		if a := fold(v); a.effect != Deny || a.cause == "" || !a.failed {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

func TestFoldOrder(t *testing.T) {
	for want, verdicts := range map[Effect][][]string{
		Allow:   {{"allow/a"}, {"allow/a", "propose/b"}},
		Propose: {{"propose/b"}},
		Deny:    {{}, {"deny/c"}, {"allow/a", "deny/c"}, {"propose/b", "deny/c"}, {"allow/a", "propose/b", "deny/c"}},
	} {
		for _, list := range verdicts {
			set := ast.NewSet()
			for _, v := range list {
				set.Add(ast.StringTerm(v))
			}
			if a := fold(set); a.effect != want || a.failed || len(a.rules) != len(list) {
				t.Errorf("%v: %+v", list, a)
			}
		}
	}
}

// The zero values of everything deny.
func TestZeroValuesDeny(t *testing.T) {
	if (Decision{}).Effect != Deny || Effect(0).String() != "deny" || Effect(9).String() != "deny" {
		t.Fatal("the zero value does not deny")
	}
	e := open(t, policyOf(t, permissive), sampleRegistry(t))
	if d := e.Decide(t.Context(), Request{}); d.Effect != Deny {
		t.Fatal(d)
	}
}

// What ask refuses whatever the policy says: here it allows everything.
func TestAskedBeforeThePolicy(t *testing.T) {
	file := sampleRegistry(t)
	put(t, file, "humans:\n  - id: alice\n  - {id: gone, disabled: true}\n")
	e := open(t, policyOf(t, permissive), file)
	if d := e.Decide(t.Context(), readA); d.Effect != Allow {
		t.Fatal(d)
	}
	if d := e.Decide(t.Context(), Request{Caller: "gone", Action: ActionRead, Path: "organization/a.md"}); !strings.Contains(d.Cause, "disabled") {
		t.Errorf("%+v", d)
	}
	for name, r := range map[string]Request{
		"unknown caller":                 {Caller: "ghost", Action: ActionRead, Path: "organization/a.md"},
		"no caller":                      {Action: ActionRead, Path: "organization/a.md"},
		"disabled":                       {Caller: "gone", Action: ActionRead, Path: "organization/a.md"},
		"unknown action":                 {Caller: "alice", Action: "execute", Path: "organization/a.md"},
		"no action":                      {Caller: "alice", Path: "organization/a.md"},
		"unknown scope":                  {Caller: "alice", Action: ActionRead, Path: "secrets/a.md"},
		"scope of mount":                 {Caller: "alice", Action: ActionRead, Path: "principal"},
		"dot dot":                        {Caller: "alice", Action: ActionRead, Path: "organization/../secrets"},
		"trailing slash":                 {Caller: "alice", Action: ActionRead, Path: "organization/"},
		"NUL":                            {Caller: "alice", Action: ActionRead, Path: "organization/a\x00b"},
		"mount as a ghost":               {Caller: "alice", Action: ActionMount, Target: "ghost"},
		"ephemeral root":                 {Caller: "alice", Action: ActionRead, Ephemeral: true},
		"ephemeral of an unknown action": {Caller: "alice", Action: "execute", Path: "organization/.a.swp", Ephemeral: true},
	} {
		for range 2 {
			if d := e.Decide(t.Context(), r); d.Effect != Deny || d.Cause == "" {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
}

// Cancelling the caller's context ends the evaluation, and what comes of it is a denial that is not kept.
func TestCancelledCallerIsDenied(t *testing.T) {
	e := open(t, policyOf(t, permissive+`
verdicts contains "deny/slow" if {
	input.file == "slow.md"
	some i in numbers.range(1, 100000000)
	some j in numbers.range(1, 100000000)
	i * j < 0
}`), sampleRegistry(t))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	r := readA
	r.Path = "organization/slow.md"
	d := e.Decide(ctx, r)
	if d.Effect != Deny || !strings.Contains(d.Cause, "gave up") || cached(e.current.Load()) != 0 {
		t.Fatal(d)
	}
}

// A denial on content is not evaded by leaving the content out.
func TestContentThatIsNotShownIsDenied(t *testing.T) {
	e := open(t, policyOf(t, permissive+`
verdicts contains "deny/secret" if contains(input.content, "SECRET")
verdicts contains "deny/cut" if { input.content_cut; input.file == "whole.md" }
`), sampleRegistry(t))
	if !e.WantsContent() {
		t.Fatal("it reads content")
	}
	commit := Request{Caller: "alice", Action: ActionWrite, Path: "organization/a.md", Commit: true, Size: 6}
	for name, tc := range map[string]struct {
		content []byte
		size    int64
		path    string
		want    Effect
	}{
		"harmless":         {[]byte("public"), 6, "organization/a.md", Allow},
		"forbidden":        {[]byte("SECRET"), 6, "organization/a.md", Deny},
		"not UTF-8":        {[]byte("\xffSECRET\xfe"), 8, "organization/a.md", Deny},
		"not shown":        {nil, 6, "organization/a.md", Deny},
		"empty":            {nil, 0, "organization/a.md", Allow},
		"cut":              {[]byte("public"), 1 << 30, "organization/a.md", Allow},
		"cut, must be all": {[]byte("public"), 1 << 30, "organization/whole.md", Deny},
	} {
		r := commit
		r.Content, r.Size, r.Path = tc.content, tc.size, tc.path
		for range 2 {
			if d := e.Decide(t.Context(), r); d.Effect != tc.want {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
}
