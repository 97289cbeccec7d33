package scenario_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"memoryfs/backend"
	"memoryfs/backend/store"
	"memoryfs/fusefs"
	"memoryfs/policy"
	"memoryfs/rego"
)

// world is a store with mounts: one a test.
type world struct {
	t   *testing.T
	dir string
	mem *backend.Memory
	log hclog.Logger
	n   int
}

const human = "mia"

// needFuse skips where FUSE is not to be had; CI must have it.
func needFuse(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("CI needs /dev/fuse: %v", err)
		}
		t.Skipf("no FUSE here: %v", err)
	}
	f.Close()
}

// need skips where a program is missing; CI installs all of them.
func need(t *testing.T, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			if os.Getenv("CI") == "true" {
				t.Fatalf("CI needs %s: %v", p, err)
			}
			t.Skipf("no %s here", p)
		}
	}
}

var sample = []backend.ImportFile{
	{Path: "organization/principles.md", Content: []byte("# Principles\n\nEvery rule needs an approval.\n")},
	{Path: "organization/security-policy.md", Content: []byte("# Security\n")},
	{Path: "teams/engineering/architecture.md", Content: []byte("# Architecture\n")},
	{Path: "teams/support/escalation.md", Content: []byte("# Escalation\n")},
	{Path: "projects/billing-redesign/current-status.md", Content: []byte("# Status\n\ngreen\n")},
	{Path: "projects/billing-redesign/decisions.md", Content: []byte("# Decisions\n")},
	{Path: "projects/billing-redesign/incidents/2026-01-01.md", Content: []byte("# Incident\n")},
	{Path: "agents/agent-104/scratchpad.md", Content: []byte("# Scratch\n")},
	{Path: "agents/agent-205/scratchpad.md", Content: []byte("# Scratch\n")},
	{Path: "users/mia/preferences.md", Content: []byte("# Preferences\n")},
	{Path: "skills/incident-report/SKILL.md", Content: []byte("# Skill\n")},
}

// makeStore lays a store directory out as init does.
func makeStore(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(dir, backend.PolicyDir), 0o700))
	must(t, os.MkdirAll(filepath.Join(dir, backend.DataDir), 0o700))
	files, err := rego.Files()
	must(t, err)
	for name, b := range files {
		must(t, os.WriteFile(filepath.Join(dir, backend.PolicyDir, name), b, 0o600))
	}
	must(t, os.WriteFile(filepath.Join(dir, backend.SettingsFile), backend.DefaultConfigYAML(), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, backend.RegistryFile), policy.SampleRegistry(human, 54321), 0o600))
}

// newWorld opens a store with the sample memory. When the test ends, everything is unmounted, and the store and its log
// must be in order.
func newWorld(t *testing.T) *world {
	t.Helper()
	needFuse(t)
	dir := t.TempDir()
	makeStore(t, dir)
	w := &world{t: t, dir: dir, log: testLogger()}
	w.open()
	t.Cleanup(w.close)
	must(t, w.mem.Import(ctx(t), human, sample))
	return w
}

func testLogger() hclog.Logger {
	if os.Getenv("MEMORYFS_TEST_LOG") != "" {
		return hclog.New(&hclog.LoggerOptions{Level: hclog.Debug, Output: os.Stderr})
	}
	return hclog.NewNullLogger()
}

func (w *world) open() {
	w.t.Helper()
	var err error
	w.mem, err = backend.Open(ctx(w.t), backend.Config{Dir: w.dir, Logger: w.log})
	must(w.t, err)
}

func (w *world) close() {
	c, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if report, err := w.mem.Fsck(c); err != nil || len(report.Problems) > 0 {
		w.t.Errorf("fsck: %v %+v", err, report.Problems)
	}
	if report, err := w.mem.Verify(c); err != nil || len(report.Problems) > 0 {
		w.t.Errorf("audit verify: %v %+v", err, report.Problems)
	}
	must(w.t, w.mem.Close(c))
}

// mount makes a one-principal mount.
func (w *world) mount(principal string) string {
	w.t.Helper()
	return w.mountWith(fusefs.Config{Principal: principal})
}

func (w *world) mountWith(cfg fusefs.Config) string {
	w.t.Helper()
	w.n++
	cfg.Dir = filepath.Join(w.t.TempDir(), fmt.Sprintf("m%d", w.n))
	cfg.Logger = w.log
	m, err := fusefs.New(ctx(w.t), w.mem, cfg)
	must(w.t, err)
	w.t.Cleanup(func() {
		c, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for range 50 {
			if err = m.Unmount(c); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		w.t.Errorf("unmount: %v", err)
	})
	return cfg.Dir
}

// caller is a session that works without a mount.
func (w *world) view(principal string) (*backend.View, backend.Caller) {
	w.t.Helper()
	v, err := w.mem.View(principal, policy.Attested{Mount: "cli"})
	must(w.t, err)
	return v, backend.Caller{Session: w.mem.Session(principal, "cli-"+w.t.Name())}
}

// storePut changes a file, but not through a mount.
func (w *world) storePut(principal, path, content string) {
	w.t.Helper()
	v, c := w.view(principal)
	_, _, _ = v.ReadFile(ctx(w.t), c, path)
	_, err := v.Put(ctx(w.t), c, path, backend.PutOptions{}, []byte(content))
	must(w.t, err)
}

func (w *world) storeCat(principal, path string) string {
	w.t.Helper()
	v, c := w.view(principal)
	_, b, err := v.ReadFile(ctx(w.t), c, path)
	must(w.t, err)
	return string(b)
}

func (w *world) versions(principal, path string) []store.Version {
	w.t.Helper()
	v, c := w.view(principal)
	all, err := v.Log(ctx(w.t), c, path, 0)
	must(w.t, err)
	return all
}

func ctx(t *testing.T) context.Context {
	c, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// result of a program.
type result struct {
	out  string // stdout and stderr
	code int
}

// sh runs a shell script with M set to the mount. A program that hangs is a failure.
func sh(t *testing.T, mount, script string, env ...string) result {
	t.Helper()
	return run(t, append([]string{"M=" + mount}, env...), "bash", "-c", script)
}

func run(t *testing.T, env []string, name string, args ...string) result {
	t.Helper()
	return runFor(t, 2*time.Minute, env, name, args...) // long enough for a loaded machine; a hang is longer
}

func runFor(t *testing.T, limit time.Duration, env []string, name string, args ...string) result {
	t.Helper()
	c, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(c, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir = "/"
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if c.Err() != nil {
		t.Fatalf("%s %q hangs; it said: %s", name, args, out)
	}
	r := result{out: string(out)}
	if err != nil {
		r.code = cmd.ProcessState.ExitCode()
		if r.code == 0 {
			r.code = -1
		}
	}
	return r
}

// ok runs a script that must succeed, and returns what it printed.
func ok(t *testing.T, mount, script string, env ...string) string {
	t.Helper()
	r := sh(t, mount, script, env...)
	if r.code != 0 {
		t.Fatalf("%s\nexits %d: %s", script, r.code, r.out)
	}
	return r.out
}

// fails runs a script that must fail and say why.
func fails(t *testing.T, mount, script, why string, env ...string) {
	t.Helper()
	r := sh(t, mount, script, env...)
	if r.code == 0 {
		t.Fatalf("%s\nsucceeds, and must fail with %q; it said: %s", script, why, r.out)
	}
	if !strings.Contains(r.out, why) {
		t.Fatalf("%s\nexits %d without %q; it said: %s", script, r.code, why, r.out)
	}
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}
