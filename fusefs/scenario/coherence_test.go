package scenario_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestCoherence: what is acknowledged on one mount is what the other one shows, at once: content, size, names.
func TestCoherence(t *testing.T) {
	w := newWorld(t)
	a, b := w.mount("agent-104"), w.mount("agent-205")
	dir := "projects/billing-redesign/incidents"
	fa, fb := filepath.Join(a, dir, "f.md"), filepath.Join(b, dir, "f.md")
	rounds := 500
	if testing.Short() {
		rounds = 50
	}
	for i := range rounds {
		text := strings.Repeat(fmt.Sprintf("round %d\n", i), 1+i%70)
		from, to := fa, fb
		if i%2 == 1 {
			from, to = fb, fa
		}
		if _, err := os.ReadFile(from); err != nil && i > 0 { // current before it writes
			t.Fatal(err)
		}
		switch i % 3 {
		case 0:
			must(t, os.WriteFile(from, []byte(text), 0o644))
		case 1:
			must(t, os.WriteFile(from+".tmp", []byte(text), 0o644))
			must(t, os.Rename(from+".tmp", from))
		case 2:
			must(t, os.Remove(from))
			if _, err := os.Stat(to); !os.IsNotExist(err) {
				t.Fatalf("round %d: the removed file is still there: %v", i, err)
			}
			must(t, os.WriteFile(from, []byte(text), 0o644))
		}
		st, err := os.Stat(to)
		must(t, err)
		got, err := os.ReadFile(to)
		must(t, err)
		if string(got) != text || st.Size() != int64(len(text)) {
			t.Fatalf("round %d: %d bytes by stat, %d by read, want %d", i, st.Size(), len(got), len(text))
		}
		sub := fmt.Sprintf("d%d", i)
		must(t, os.Mkdir(filepath.Join(filepath.Dir(from), sub), 0o755))
		must(t, os.Rename(filepath.Join(filepath.Dir(from), sub), filepath.Join(filepath.Dir(from), sub+"-new")))
		names, err := os.ReadDir(filepath.Dir(to))
		must(t, err)
		found := ""
		for _, n := range names {
			if strings.HasPrefix(n.Name(), sub) {
				found += n.Name()
			}
		}
		equal(t, found, sub+"-new")
		must(t, os.Remove(filepath.Join(filepath.Dir(to), sub+"-new")))
	}
}

// TestConcurrentChangesOfOneDirectory from two mounts: no deadlock, nothing lost.
func TestConcurrentChangesOfOneDirectory(t *testing.T) {
	w := newWorld(t)
	mounts := []string{w.mount("agent-104"), w.mount("agent-205")}
	const each = 100
	var wg sync.WaitGroup
	for i, m := range mounts {
		for j := range 2 {
			wg.Go(func() {
				for k := range each {
					name := filepath.Join(m, "projects/billing-redesign/incidents", fmt.Sprintf("%d-%d-%d", i, j, k))
					if err := os.WriteFile(name, []byte(name), 0o644); err != nil {
						t.Error(err)
					}
					if k%2 == 0 {
						if err := os.Rename(name, name+"-renamed"); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
	wg.Wait()
	for _, m := range mounts {
		names, err := os.ReadDir(filepath.Join(m, "projects/billing-redesign/incidents"))
		must(t, err)
		equal(t, len(names), len(mounts)*2*each+1)
	}
}

// TestDirectoryRenameKeepsHistory below it, and is seen by the other mount.
func TestDirectoryRenameKeepsHistory(t *testing.T) {
	w := newWorld(t)
	a, b := w.mount("agent-104"), w.mount("agent-205")
	d := "projects/billing-redesign/incidents/"
	ok(t, a, "mkdir $M/"+d+"x; for i in 1 2 3; do echo $i > $M/"+d+"x/f; done; mv $M/"+d+"x $M/"+d+"y")
	equal(t, ok(t, b, "cat $M/"+d+"y/f"), "3\n")
	fails(t, b, "cat $M/"+d+"x/f", "No such file")
	equal(t, len(w.versions("agent-104", d+"y/f")), 3)
}
