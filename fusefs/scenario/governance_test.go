package scenario_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memoryfs/audit"
	"memoryfs/backend"
	"memoryfs/fusefs"
)

// records reads the audit log.
func (w *world) records() []audit.Record {
	w.t.Helper()
	must(w.t, w.mem.Audit().Sync(ctx(w.t), w.mem.Status(ctx(w.t)).Revision))
	var all []audit.Record
	must(w.t, audit.Scan(ctx(w.t), w.mem.AuditDir(), 1, func(_ []byte, r audit.Record) error {
		all = append(all, r)
		return nil
	}))
	return all
}

// TestDeniedWrite: EACCES at open, the file untouched, the rule in .memory/errors, and a record.
func TestDeniedWrite(t *testing.T) {
	w := newWorld(t)
	m := w.mount("agent-104")
	for _, script := range []string{
		"echo x > $M/organization/principles.md",
		"echo x >> $M/organization/principles.md",
		"echo x > $M/organization/new.md",
		"rm $M/organization/principles.md",
		"mv $M/organization/principles.md $M/agents/agent-104/p.md",
		"mkdir $M/organization/new",
		"truncate -s 0 $M/organization/principles.md",
		"chmod 600 $M/organization/principles.md",
		"echo x > $M/agents/agent-104/f.tmp; mv -f $M/agents/agent-104/f.tmp $M/organization/principles.md",
		"echo x > $M/projects/billing-redesign/decisions.md",
		"mkdir $M/elsewhere",
	} {
		fails(t, m, script, "Permission denied")
	}
	equal(t, w.storeCat("agent-104", "organization/principles.md"), string(sample[0].Content))
	ok(t, m, `tail -n 20 $M/.memory/errors | grep -q '"errno":"EACCES".*propose/organization'`)
	found := false
	for _, r := range w.records() {
		found = found || r.Kind == "refusal" && r.Errno == "EACCES" && r.Path == "organization/principles.md" && r.Principal == "agent-104"
	}
	if !found {
		t.Fatal("the refusal is not in the audit log")
	}
}

// hiddenChecks must all say that there is nothing.
var hiddenChecks = []string{"stat $M/teams/support", "ls $M/teams/support", "cat $M/teams/support/escalation.md", "cd $M/teams/support",
	"mv $M/teams/support $M/agents/x", "ls $M/teams/support/", "rmdir $M/teams/support", "getfattr -d $M/teams/support 2>&1"}

// TestHiddenDirectory is ENOENT in every way, and absent from listings.
func TestHiddenDirectory(t *testing.T) {
	w := newWorld(t)
	m := w.mount("agent-104")
	for _, script := range hiddenChecks {
		fails(t, m, script, "No such file")
	}
	equal(t, ok(t, m, "ls $M/teams"), "engineering\n")
	if out := ok(t, m, "find $M; ls -aR $M; grep -rl . $M"); strings.Contains(out, "support") || strings.Contains(out, "escalation") {
		t.Fatal(out)
	}
}

// as runs a script as another uid.
func as(t *testing.T, uid int, mount, script string) result {
	t.Helper()
	return run(t, []string{"M=" + mount}, "setpriv", fmt.Sprint("--reuid=", uid), fmt.Sprint("--regid=", uid), "--clear-groups", "bash", "-c", script)
}

// sharedWorld has a shared mount; uid 1001 is the human (who may see support), 1002 agent-104 (who may not).
func sharedWorld(t *testing.T) (*world, string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("other uids need root")
	}
	need(t, "setpriv")
	w := newWorld(t)
	w.registry(func(s string) string {
		s = strings.Replace(s, "uids: [54321]", "uids: [1001]", 1)
		return strings.Replace(s, "- id: agent-104\n", "- id: agent-104\n    uids: [1002]\n", 1)
	})
	must(t, os.Chmod(w.t.TempDir(), 0o755))
	m := w.mountWith(fusefs.Config{Shared: true})
	for dir := filepath.Dir(m); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		must(t, os.Chmod(dir, 0o755))
	}
	return w, m
}

// registry rewrites identities.yaml and reloads.
func (w *world) registry(change func(string) string) {
	w.t.Helper()
	file := filepath.Join(w.dir, backend.RegistryFile)
	b, err := os.ReadFile(file)
	must(w.t, err)
	must(w.t, os.WriteFile(file, []byte(change(string(b))), 0o600))
	must(w.t, w.mem.Policy().Reload(ctx(w.t)))
}

// TestSharedMountSeesCallers: O29. Each uid sees its own view, whatever another has warmed; uid 0 sees nothing.
func TestSharedMountSeesCallers(t *testing.T) {
	w, m := sharedWorld(t)
	for range 3 {
		if r := as(t, 1001, m, "ls -R $M && cat $M/teams/support/escalation.md"); r.code != 0 || !strings.Contains(r.out, "# Escalation") {
			t.Fatal(r.out)
		}
		for _, script := range hiddenChecks {
			if r := as(t, 1002, m, script); r.code == 0 || !strings.Contains(r.out, "No such file") {
				t.Fatalf("%s: exit %d %s", script, r.code, r.out)
			}
		}
		if r := as(t, 1002, m, "ls $M/teams"); r.out != "engineering\n" {
			t.Fatal(r.out)
		}
	}
	if r := as(t, 1002, m, "echo mine >> $M/agents/agent-104/scratchpad.md && cat $M/agents/agent-104/scratchpad.md"); r.code != 0 {
		t.Fatal(r.out)
	}
	equal(t, w.versions("agent-104", "agents/agent-104/scratchpad.md")[0].Prov.Principal, "agent-104")
	if r := as(t, 1001, m, "echo x >> $M/agents/agent-104/scratchpad.md"); r.code == 0 {
		t.Fatal("the owner wrote the agent's file")
	}
	if r := as(t, 0, m, "ls $M"); r.code == 0 {
		t.Fatalf("root sees the memory: %s", r.out)
	}
	if r := as(t, 1003, m, "ls $M"); r.code == 0 {
		t.Fatalf("a stranger sees the memory: %s", r.out)
	}
}

// TestRevocationCountsAtOnce: open handles and directories included, on both kinds of mount.
func TestRevocationCountsAtOnce(t *testing.T) {
	need(t, "python3")
	w := newWorld(t)
	m := w.mount(human)
	ok(t, m, "ls -R $M >/dev/null; cat $M/teams/support/escalation.md")
	go func() {
		time.Sleep(700 * time.Millisecond)
		w.registry(func(s string) string {
			i := strings.Index(s, "- id: support")
			return s[:i] + strings.Replace(s[i:], "maintainers: [mia]", "maintainers: [reviewer]", 1)
		})
	}()
	ok(t, m, `python3 - <<'E'
import os, time
M = os.environ['M']
f = os.open(M + '/teams/support/escalation.md', os.O_RDONLY)
g = os.open(M + '/teams/support/escalation.md', os.O_RDWR)
d = os.open(M + '/teams/support', os.O_RDONLY)
assert os.pread(f, 3, 0) == b'# E'
time.sleep(1.5)
def refused(what, fn):
    try: r = fn()
    except OSError: return
    raise SystemExit('%s still works: %r' % (what, r))
refused('read', lambda: os.pread(f, 3, 0))
refused('write', lambda: os.pwrite(g, b'x', 0))
refused('readdir', lambda: os.listdir(d))
refused('stat', lambda: os.stat(M + '/teams/support'))
refused('open', lambda: open(M + '/teams/support/escalation.md'))
assert 'support' not in os.listdir(M + '/teams')
E`)
}

// TestBrokenPolicies: a store whose policy cannot decide mounts nothing; a reload to one is refused and the old serves on.
func TestBrokenPolicies(t *testing.T) {
	broken := map[string]string{
		"undefined":     `package memory.authz`,
		"object":        "package memory.authz\n\nverdicts := {}",
		"string":        "package memory.authz\n\nverdicts := \"allow/all\"",
		"null":          "package memory.authz\n\nverdicts := null",
		"conflicting":   "package memory.authz\n\nverdicts := {\"allow/a\"} if input.action\n\nverdicts := {\"allow/b\"} if input.path == input.path",
		"wrong package": "package memory.other\n\nverdicts contains \"allow/all\"",
		"syntax":        "package memory.authz\n\nverdicts contains",
		"allows anyone": "package memory.authz\n\nverdicts contains \"allow/all\"",
	}
	for name, text := range broken {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.mount("agent-104")
			dir := filepath.Join(w.dir, backend.PolicyDir)
			must(t, os.RemoveAll(dir))
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.WriteFile(filepath.Join(dir, "authz.rego"), []byte(text), 0o600))
			if err := w.mem.Policy().Reload(ctx(t)); err == nil {
				t.Fatal("the reload was accepted")
			}
			ok(t, m, "cat $M/agents/agent-104/scratchpad.md")
			must(t, w.mem.Audit().Sync(ctx(t), 0))
			other := t.TempDir()
			makeStore(t, other)
			must(t, os.RemoveAll(filepath.Join(other, backend.PolicyDir)))
			must(t, os.Rename(dir, filepath.Join(other, backend.PolicyDir)))
			if mem, err := backend.Open(ctx(t), backend.Config{Dir: other}); err == nil {
				_ = mem.Close(ctx(t))
				t.Fatal("the store opens")
			}
		})
	}
}

// TestErringAndLoopingRules load, since nothing is wrong with their shape, and deny when they run.
func TestErringAndLoopingRules(t *testing.T) {
	for name, rule := range map[string]string{
		"erring":  "verdicts contains \"deny/error\" if {\n\tinput.scope == \"agents\"\n\tto_number(input.path) > 1\n}",
		"looping": "verdicts contains \"deny/slow\" if {\n\tinput.scope == \"agents\"\n\tinput.file == \"scratchpad.md\"\n\tcount([1 | some a in numbers.range(1, 3000); some b in numbers.range(1, 3000); a * b == -1]) > 0\n}",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			m := w.mount("agent-104")
			ok(t, m, "cat $M/agents/agent-104/scratchpad.md")
			dir := filepath.Join(w.dir, backend.PolicyDir)
			tests, err := filepath.Glob(filepath.Join(dir, "*_test.rego"))
			must(t, err)
			for _, f := range tests {
				must(t, os.Remove(f)) // they would find it; here the daemon must
			}
			must(t, os.WriteFile(filepath.Join(dir, "extra.rego"), []byte("package memory.authz\n\n"+rule+"\n"), 0o600))
			if err := w.mem.Policy().Reload(ctx(t)); err != nil {
				t.Logf("refused at load, which is as good: %v", err)
				return
			}
			if r := sh(t, m, "timeout 5 cat $M/agents/agent-104/scratchpad.md"); r.code == 0 || r.code == 124 {
				t.Fatalf("exit %d: %s", r.code, r.out)
			}
			ok(t, m, "cat $M/organization/principles.md")
		})
	}
}

// TestMissingPolicyRefusesToOpen.
func TestMissingPolicyRefusesToOpen(t *testing.T) {
	dir := t.TempDir()
	makeStore(t, dir)
	must(t, os.RemoveAll(filepath.Join(dir, backend.PolicyDir)))
	if mem, err := backend.Open(ctx(t), backend.Config{Dir: dir}); err == nil {
		_ = mem.Close(ctx(t))
		t.Fatal("it opens")
	}
}

// TestContentRuleAndLimit: what a rule forbids in a content is refused at the save, and the old content stays.
func TestContentRuleAndLimit(t *testing.T) {
	w := newWorld(t)
	m := w.mount("agent-104")
	extra := "package memory.authz\n\nverdicts contains \"deny/secret\" if {\n\tinput.commit\n\tcontains(input.content, \"SECRET\")\n}\n\n" +
		"obligations[\"max_bytes\"] := 100 if input.file == \"small.md\"\n"
	must(t, os.WriteFile(filepath.Join(w.dir, backend.PolicyDir, "extra.rego"), []byte(extra), 0o600))
	must(t, w.mem.Policy().Reload(ctx(t)))
	ok(t, m, "echo fine > $M/agents/agent-104/x.md; echo fine > $M/agents/agent-104/small.md")
	fails(t, m, "echo 'a SECRET' > $M/new; cp $M/new $M/agents/agent-104/x.md", "denied")
	fails(t, m, `python3 -c "f=open('$M/agents/agent-104/x.md','w'); f.write('a SECRET'); f.close()"`, "Permission denied")
	fails(t, m, `python3 -c "f=open('$M/agents/agent-104/small.md','a'); f.write('x'*200); f.close()"`, "File too large")
	equal(t, w.storeCat("agent-104", "agents/agent-104/x.md"), "fine\n")
	equal(t, w.storeCat("agent-104", "agents/agent-104/small.md"), "fine\n")
	ok(t, m, "grep -q deny/secret $M/.memory/errors")
}

// TestVirtualTree is there by name, not by listing, and read-only.
func TestVirtualTree(t *testing.T) {
	w := newWorld(t)
	m := w.mountWith(fusefs.Config{Principal: "agent-104", Session: "run-7", Reason: "weekly review"})
	equal(t, ok(t, m, "ls -A $M | grep -c memory || true"), "0\n")
	equal(t, ok(t, m, "ls $M/.memory"), "README.md\nchanges\nconflicts\nerrors\nhistory\nwhoami\n")
	ok(t, m, "grep -q 'EAGAIN' $M/.memory/README.md && grep -q 'session: run-7' $M/.memory/whoami && grep -q 'reason: weekly review' $M/.memory/whoami")
	for _, script := range []string{"echo x > $M/.memory/whoami", "rm $M/.memory/whoami", "mkdir $M/.memory/x", "touch $M/.memory/x", "mv $M/.memory $M/agents/agent-104/m"} {
		r := sh(t, m, script)
		if r.code == 0 {
			t.Errorf("%s succeeds", script)
		}
	}
	ok(t, m, "echo y > $M/agents/agent-104/r.md")
	v := w.versions("agent-104", "agents/agent-104/r.md")[0]
	equal(t, v.Prov.Session, "run-7")
	equal(t, v.Prov.Reason, "weekly review")
	equal(t, ok(t, m, "getfattr --only-values -n user.memory.reason $M/agents/agent-104/r.md 2>/dev/null; getfattr --only-values -n user.memory.write $M/organization/principles.md 2>/dev/null"), "weekly reviewpropose")
}
