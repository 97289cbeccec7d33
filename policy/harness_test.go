package policy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"memoryfs/rego"
)

// put writes a file of a test.
func put(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// defaultPolicy copies the default policy out, as init does, and returns its directory.
func defaultPolicy(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	files, err := rego.Files()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		put(t, filepath.Join(dir, name), string(text))
	}
	return dir
}

// sampleRegistry writes the registry that init writes for alice (uid 1000), and returns the file.
func sampleRegistry(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "identities.yaml")
	put(t, file, string(SampleRegistry("alice", 1000)))
	return file
}

// policyOf makes a directory of one policy file.
func policyOf(t testing.TB, text string) string {
	t.Helper()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "authz.rego"), text)
	return dir
}

func open(t testing.TB, dir, registry string) *Engine {
	t.Helper()
	e, err := Open(t.Context(), Options{PolicyDir: dir, RegistryFile: registry, Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// patience is the time of one decision in tests: the race detector on a busy machine is slow.
const patience = 5 * time.Second

// crowd is a registry of n agents in n/10 teams.
func crowd(n int) string {
	var b, members strings.Builder
	b.WriteString("humans:\n  - id: boss\n    roles: [admin]\nagents:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {id: agent-%d, owners: [boss], serves: [boss]}\n", i)
		if i%10 == 0 {
			fmt.Fprintf(&members, "  - {id: team-%d, maintainers: [boss], members: [agent-%d, agent-%d, agent-%d]}\n", i/10, i, (i+1)%n, (i+2)%n)
		}
	}
	return b.String() + "teams:\n" + members.String()
}
