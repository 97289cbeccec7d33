package policy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOpenRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		policy string
		want   error
		says   string
	}{
		"syntax error":               {header + `verdicts contains "allow/x" if {`, ErrPolicy, "authz.rego:2"},
		"Rego v0":                    {header + `verdicts["allow/x"] { true }`, ErrPolicy, "authz.rego"},
		"wrong package":              {"package other\n" + `verdicts contains "allow/x" if input.dir`, ErrPolicy, "no rule data.memory.authz.verdicts"},
		"only a comment":             {"# nothing\n", ErrPolicy, "authz.rego"},
		"no verdicts":                {header + `allow if input.dir`, ErrPolicy, "no rule data.memory.authz.verdicts"},
		"verdicts an object":         {header + `verdicts["x"] := "allow/x" if input.dir`, ErrPolicy, "must be a set"},
		"verdicts {}":                {header + `verdicts := {}`, ErrPolicy, "must be a set"},
		"verdicts a string":          {header + `verdicts := "allow/x"`, ErrPolicy, "must be a set"},
		"verdicts null":              {header + `verdicts := null`, ErrPolicy, "must be a set"},
		"verdicts a set by value":    {header + `verdicts := {"allow/x"}`, ErrPolicy, "must be a set"},
		"conflicting complete rules": {header + "verdicts := {\"allow/x\"} if input.dir\nverdicts := {\"deny/x\"} if input.depth == 1", ErrPolicy, "must be a set"},
		"verdicts a package":         {"package memory.authz.verdicts\nx := 1", ErrPolicy, "must be a set"},
		"obligations a set":          {permissive + `obligations contains "reason" if input.dir`, ErrPolicy, "must be an object"},
		"obligation unknown":         {permissive + `obligations["resaon"] := true if input.dir`, ErrPolicy, "authz.rego:4: there is no obligation \"resaon\""},
		"unused variable, strictly":  {permissive + `verdicts contains "deny/x" if { y := 1; input.dir }`, ErrPolicy, "authz.rego:4"},
		"unsafe variable":            {permissive + `verdicts contains "deny/x" if nonesuch`, ErrPolicy, "nonesuch"},
		"clock":                      {permissive + `verdicts contains "deny/x" if time.now_ns() > 5`, ErrPolicy, "authz.rego:4"},
		"chance":                     {permissive + `verdicts contains "deny/x" if rand.intn("a", 2) == 1`, ErrPolicy, "rand.intn: its answer does not follow"},
		"uuid":                       {permissive + `verdicts contains "deny/x" if uuid.rfc4122("a") == "b"`, ErrPolicy, "uuid.rfc4122"},
		"network":                    {permissive + `verdicts contains "deny/x" if http.send({"method": "get", "url": "http://localhost"}).status_code == 200`, ErrPolicy, "policies have no network"},
		"name service":               {permissive + `verdicts contains "deny/x" if count(net.lookup_ip_addr("localhost")) > 0`, ErrPolicy, "no network"},
		"runtime":                    {permissive + `verdicts contains "deny/x" if opa.runtime().env.HOME == "x"`, ErrPolicy, "opa.runtime"},
		"policies from strings":      {permissive + `verdicts contains "deny/x" if rego.parse_module("a", input.path).package`, ErrPolicy, "rego.parse_module"},
		"clock in certificates":      {permissive + `verdicts contains "deny/x" if crypto.x509.parse_and_verify_certificates(input.path)[0]`, ErrPolicy, "crypto.x509"},
		"a field that input has not": {permissive + `verdicts contains "deny/x" if input.claims.reason == ""`, ErrPolicy, "there is no input.claims"},
		"the same in a helper":       {permissive + "h if input.user == \"x\"\n" + `verdicts contains "deny/x" if h`, ErrPolicy, "there is no input.user"},
		"data that nothing defines":  {permissive + `verdicts contains "deny/x" if not data.exceptions[input.path]`, ErrPolicy, "nothing defines data.exceptions"},
		"everything to everybody":    {header + `verdicts contains "allow/x" if true`, ErrPolicy, "it allows"},
		"everything to the disabled": {header + `verdicts contains "allow/x" if input.caller.kind == "human"`, ErrPolicy, "a disabled human"},
		"a place to the disabled":    {header + `verdicts contains "allow/x" if input.caller.teams[input.name]`, ErrPolicy, "a disabled"},
		"a directory to the unknown": {header + `verdicts contains "allow/x" if { input.scope == "organization"; input.dir }`, ErrPolicy, "an unknown caller"},
		"mounting to the unknown":    {header + `verdicts contains "allow/x" if { input.action == "mount"; input.target.id == input.caller.id }`, ErrPolicy, "mount"},
		"endless":                    {permissive + `verdicts contains "deny/x" if { some i in numbers.range(1, 100000000); some j in numbers.range(1, 100000000); i * j < 0 }`, ErrPolicy, "no decision within"},
		"recursion":                  {permissive + "a if b\nb if a\n" + `verdicts contains "deny/x" if a`, ErrPolicy, "recursive"},
	} {
		t.Run(name, func(t *testing.T) { refused(t, policyOf(t, tc.policy), tc.want, tc.says) })
	}
}

// refused: by Open and by Check alike.
func refused(t *testing.T, dir string, want error, says string) {
	t.Helper()
	registry := sampleRegistry(t)
	if e, err := Open(t.Context(), Options{PolicyDir: dir, RegistryFile: registry}); e != nil || !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
		t.Errorf("Open: %v, want %q with %q", err, want, says)
	}
	if _, err := Check(t.Context(), dir, registry); !errors.Is(err, want) || !strings.Contains(err.Error(), says) {
		t.Errorf("Check: %v, want %q with %q", err, want, says)
	}
}

// An allow that depends on what its caller says of itself is refused, however it gets there.
func TestRuleThatReadsAClaimIsRefused(t *testing.T) {
	for name, rule := range map[string]string{
		"directly":                `verdicts contains "allow/x" if { input.caller.known; input.claimed.reason == "please" }`,
		"propose":                 `verdicts contains "propose/x" if { input.caller.known; input.claimed.reason == "please" }`,
		"by a helper":             "asked if input.claimed.reason == \"please\"\n" + `verdicts contains "allow/x" if { input.caller.known; asked }`,
		"by a helper's helper":    "a if b\nb if input.claimed.session\n" + `verdicts contains "allow/x" if { input.caller.known; a }`,
		"by an else":              "a := 1 if input.dir\nelse := 2 if input.claimed.reason\n" + `verdicts contains "allow/x" if { input.caller.known; a == 2 }`,
		"by a function":           "f(c) if c.reason == \"please\"\n" + `verdicts contains "allow/x" if { input.caller.known; f(input.claimed) }`,
		"input whole":             "f(i) if i.claimed.reason == \"please\"\n" + `verdicts contains "allow/x" if { input.caller.known; f(input) }`,
		"input under a name":      `verdicts contains "allow/x" if { input.caller.known; i := input; i.claimed.reason }`,
		"a computed field":        `verdicts contains "allow/x" if { input.caller.known; some k in ["claimed"]; input[k].reason }`,
		"walk":                    `verdicts contains "allow/x" if { input.caller.known; walk(input, [["claimed", "reason"], "please"]) }`,
		"a negation":              `verdicts contains "allow/x" if { input.caller.known; not input.claimed.reason }`,
		"a comprehension":         `verdicts contains "allow/x" if { input.caller.known; count([1 | input.claimed.reason]) == 1 }`,
		"every":                   `verdicts contains "allow/x" if { input.caller.known; every x in [1] { input.claimed.reason == x } }`,
		"a computed verdict":      `verdicts contains v if { input.caller.known; v := concat("", ["deny/", input.claimed.reason]) }`,
		"a verdict out of a list": `verdicts contains v if { some v in ["deny/a", "allow/b"]; input.claimed.reason == v; input.caller.known }`,
		"the obligations":         "obligations[\"reason\"] := true if input.claimed.reason == \"x\"\n" + `verdicts contains "allow/x" if { input.caller.known; obligations.reason }`,
		"with":                    "h if input.dir\n" + `verdicts contains "allow/x" if { input.caller.known; h with input.dir as input.claimed.reason }`,
		"a function put in":       "f(x) := x\ng(x) := input.claimed.reason if x\nh if f(input.dir)\n" + `verdicts contains "allow/x" if { input.caller.known; h with data.memory.authz.f as data.memory.authz.g }`,
		"another package":         `verdicts contains "allow/x" if { input.caller.known; data.helpers.asked }`,
		"another package, named":  `verdicts contains "allow/x" if { input.caller.known; some n in ["asked"]; data.helpers[n] }`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := policyOf(t, header+rule)
			put(t, filepath.Join(dir, "helpers.rego"), "package helpers\nasked if input.claimed.reason == \"please\"\n")
			refused(t, dir, ErrPolicy, "reads input.claimed")
		})
	}
}

// A denial and an obligation may read claims, and then the cache keeps claims apart.
func TestDenialMayReadAClaim(t *testing.T) {
	e := open(t, policyOf(t, permissive+`
bare if not startswith(input.claimed.reason, "ticket-")
verdicts contains "deny/needs-a-ticket" if { input.action == "write"; bare }
obligations["audit_read"] := true if input.claimed.session == "watched"
`), sampleRegistry(t))
	write := Request{Caller: "alice", Action: ActionWrite, Path: "organization/a.md"}
	for range 2 {
		for reason, want := range map[string]Effect{"": Deny, "because": Deny, "ticket-1": Allow} {
			r := write
			r.Claimed.Reason = reason
			if d := e.Decide(t.Context(), r); d.Effect != want {
				t.Errorf("%q: %+v", reason, d)
			}
		}
		for session, want := range map[string]bool{"": false, "watched": true} {
			r := readA
			r.Claimed.Session = session
			if d := e.Decide(t.Context(), r); d.Obligations.AuditRead != want {
				t.Errorf("%q: %+v", session, d)
			}
		}
	}
}

func TestOpenWithoutAPolicy(t *testing.T) {
	dir := t.TempDir()
	refused(t, filepath.Join(dir, "missing"), ErrNoPolicy, "missing")
	refused(t, dir, ErrNoPolicy, "no .rego file")
	put(t, filepath.Join(dir, "authz_test.rego"), header+"test_x if true\n")
	refused(t, dir, ErrNoPolicy, "no .rego file") // tests alone are no policy
	put(t, filepath.Join(dir, ".authz.rego"), permissive)
	refused(t, dir, ErrNoPolicy, "no .rego file") // an editor's file is none either
	file := filepath.Join(dir, "authz.rego")
	put(t, file, permissive)
	refused(t, file, ErrNoPolicy, file) // not a directory
}

func TestPolicyFilesAreReadOrRefusedNeverOverlooked(t *testing.T) {
	dir := policyOf(t, permissive)
	sub := filepath.Join(dir, "more")
	if err := os.Mkdir(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	open(t, dir, sampleRegistry(t))
	put(t, filepath.Join(sub, "deny.rego"), header+`verdicts contains "deny/x" if input.dir`)
	refused(t, dir, ErrPolicy, "subdirectories are not read")
	if err := os.RemoveAll(sub); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.rego"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, dir, ErrPolicy, "not a regular file")
}

func TestOwnTestsMustPass(t *testing.T) {
	dir := policyOf(t, permissive)
	file := filepath.Join(dir, "authz_test.rego")
	for name, tc := range map[string]struct{ text, says string }{
		"fails":              {"package t\ntest_one if 1 == 2\n", "data.t.test_one at " + file + ":2"},
		"builtin error":      {"package t\ntest_one if not to_number(\"x\")\n", "data.t.test_one"},
		"asks for the clock": {"package t\ntest_one if time.now_ns() > 0\n", "time.now_ns"},
	} {
		put(t, file, tc.text)
		_, err := Open(t.Context(), Options{PolicyDir: dir, RegistryFile: sampleRegistry(t)})
		if !errors.Is(err, ErrTestsFail) && !errors.Is(err, ErrPolicy) || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	put(t, file, "package t\ntodo_test_later if false\ntest_data if data.identities.alice.kind == \"human\"\n")
	open(t, dir, sampleRegistry(t))
	results, err := Test(t.Context(), dir, sampleRegistry(t))
	if err != nil || len(results) != 2 || !results[0].Pass || !results[1].Skip {
		t.Fatal(results, err)
	}
}

// A policy cannot lean on a rule that only its tests define.
func TestRulesOfTestsAreNotThePolicy(t *testing.T) {
	dir := policyOf(t, permissive+`verdicts contains "deny/x" if not data.memory.authz.helper`)
	put(t, filepath.Join(dir, "x_test.rego"), header+"helper if true\n")
	refused(t, dir, ErrPolicy, "nothing defines data.memory.authz.helper")
}

func TestCheckAndTestOfTheDefaultPolicy(t *testing.T) {
	report, err := Check(t.Context(), defaultPolicy(t), sampleRegistry(t))
	if err != nil || report.Principals != 4 || len(report.Tests) < 40 || len(report.Rules) < 30 || len(report.Revision) != 16 {
		t.Fatalf("%v, %d principals, %d tests, %d rules", err, report.Principals, len(report.Tests), len(report.Rules))
	}
	for _, rule := range report.Rules {
		if rule.Says == "" || !strings.Contains(rule.Where, ".rego:") {
			t.Errorf("%s does not say what it is for", rule.Rule)
		}
	}
}
