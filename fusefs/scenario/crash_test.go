package scenario_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"memoryfs/backend"
	"memoryfs/fusefs"
)

const (
	crashStore = "MEMORYFS_CRASH_STORE"
	crashMount = "MEMORYFS_CRASH_MOUNT"
)

// TestCrashChild serves a mount until it is killed.
func TestCrashChild(t *testing.T) {
	dir := os.Getenv(crashStore)
	if dir == "" {
		t.Skip("the child of TestKillNine")
	}
	mem, err := backend.Open(context.Background(), backend.Config{Dir: dir})
	must(t, err)
	m, err := fusefs.New(context.Background(), mem, fusefs.Config{Dir: os.Getenv(crashMount), Principal: "agent-104"})
	must(t, err)
	fmt.Println("mounted")
	<-m.Done()
}

// TestKillNine: whatever the moment at which the daemon is killed, every save that was acknowledged is there, none is torn
// or empty, the store and its log are in order, and the mount comes back at once.
func TestKillNine(t *testing.T) {
	needFuse(t)
	rounds := 100
	if testing.Short() {
		rounds = 5
	}
	if n, err := strconv.Atoi(os.Getenv("MEMORYFS_CRASH_ROUNDS")); err == nil {
		rounds = n
	}
	dir, mount := t.TempDir(), filepath.Join(t.TempDir(), "m")
	makeStore(t, dir)
	mem, err := backend.Open(ctx(t), backend.Config{Dir: dir})
	must(t, err)
	must(t, mem.Import(ctx(t), human, sample))
	must(t, mem.Close(ctx(t)))
	t.Cleanup(func() { must(t, fusefs.CleanDead(mount)) })
	saved := &acknowledged{content: map[string]string{}}
	for round := range rounds {
		child := serve(t, dir, mount)
		saved.check(t, mount)
		saved.write(mount, round, time.Duration(5+rand.IntN(120))*time.Millisecond, func() {
			must(t, child.Process.Signal(syscall.SIGKILL))
		})
		_ = child.Wait() // killed
	}
	must(t, fusefs.CleanDead(mount))
	w := &world{t: t, dir: dir, log: testLogger()}
	w.open()
	w.close()
}

// serve starts a child and waits until its mount answers.
func serve(t *testing.T, dir, mount string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestCrashChild$")
	cmd.Env = append(os.Environ(), crashStore+"="+dir, crashMount+"="+mount)
	cmd.Dir = "/"
	out, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = os.Stderr
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	said := ""
	for lines.Scan() {
		said += lines.Text() + "\n"
		if lines.Text() == "mounted" {
			go func() {
				for lines.Scan() {
				}
			}()
			return cmd
		}
	}
	_ = cmd.Wait()
	t.Fatal("the daemon did not come back: ", said)
	return nil
}

// acknowledged is what the writers were told is saved.
type acknowledged struct {
	mu      sync.Mutex
	content map[string]string // by name, of whole files
	lines   []string          // appended
	tried   map[string]bool   // contents that may or may not be there, by name and text
}

// write lets three writers save until kill has been called.
func (a *acknowledged) write(mount string, round int, after time.Duration, kill func()) {
	dir := filepath.Join(mount, "agents/agent-104")
	var wg sync.WaitGroup
	a.tried = map[string]bool{}
	for i := range 2 {
		wg.Go(func() {
			for k := 0; ; k++ {
				name := fmt.Sprintf("w%d-%d", i, k%5)
				text := fmt.Sprintf("round %d write %d by %d\n%s", round, k, i, strings.Repeat("x", rand.IntN(9000)))
				a.mu.Lock()
				a.tried[name+"\x00"+text] = true
				a.mu.Unlock()
				file := filepath.Join(dir, name)
				_, _ = os.ReadFile(file)
				var err error
				if k%2 == 0 {
					err = os.WriteFile(file, []byte(text), 0o644)
				} else if err = os.WriteFile(file+".tmp", []byte(text), 0o644); err == nil {
					err = os.Rename(file+".tmp", file)
				}
				if err != nil {
					return
				}
				a.mu.Lock()
				a.content[name] = text
				a.mu.Unlock()
			}
		})
	}
	wg.Go(func() {
		for k := 0; ; k++ {
			line := fmt.Sprintf("round %d line %d\n", round, k)
			f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
			if err != nil {
				return
			}
			_, werr := f.WriteString(line)
			if cerr := f.Close(); werr != nil || cerr != nil {
				return
			}
			a.mu.Lock()
			a.lines = append(a.lines, line)
			a.mu.Unlock()
		}
	})
	time.Sleep(after)
	kill()
	wg.Wait()
}

// check compares the mount with what was acknowledged. The last save that was under way may be there or not, but whole.
func (a *acknowledged) check(t *testing.T, mount string) {
	t.Helper()
	dir := filepath.Join(mount, "agents/agent-104")
	for name, want := range a.content {
		got, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		if string(got) != want && !a.tried[name+"\x00"+string(got)] {
			t.Fatalf("%s holds %d bytes (%.40q), acknowledged were %d (%.40q)", name, len(got), got, len(want), want)
		}
		a.content[name] = string(got)
	}
	names, err := os.ReadDir(dir)
	must(t, err)
	for _, n := range names {
		if st, err := n.Info(); err == nil && st.Size() == 0 && !strings.HasSuffix(n.Name(), ".tmp") {
			t.Fatalf("%s is empty", n.Name())
		}
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if os.IsNotExist(err) && len(a.lines) == 0 {
		return
	}
	must(t, err)
	have := strings.SplitAfter(string(log), "\n")
	i := 0
	for _, want := range a.lines {
		for i < len(have) && have[i] != want {
			if !strings.HasPrefix(have[i], "round ") || !strings.HasSuffix(have[i], "\n") {
				t.Fatalf("a torn line: %q", have[i])
			}
			i++
		}
		if i == len(have) {
			t.Fatalf("an acknowledged line is lost: %q", want)
		}
	}
}

// TestFullDisk: a 64 MiB volume is filled until ENOSPC. The daemon lives, reads work, nothing acknowledged is lost, a
// restart on the full volume works, and removing frees space.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	needFuse(t)
	vol := t.TempDir()
	must(t, syscall.Mount("tmpfs", vol, "tmpfs", 0, "size=64m"))
	t.Cleanup(func() { must(t, syscall.Unmount(vol, 0)) })
	dir := filepath.Join(vol, "store")
	makeStore(t, dir)
	w := &world{t: t, dir: dir, log: testLogger()}
	w.open()
	must(t, w.mem.Import(ctx(t), human, sample))
	t.Run("fill", func(t *testing.T) { w.fill(t) })
}

func (w *world) fill(t *testing.T) {
	w.t = t
	defer w.close()
	saved := map[string][]byte{}
	t.Run("until ENOSPC", func(t *testing.T) {
		w.t = t
		d := filepath.Join(w.mount("agent-104"), "agents/agent-104")
		var full error
		for i := 0; i < 1000 && full == nil; i++ {
			b := make([]byte, 200_000)
			for j := range b {
				b[j] = byte(rand.Uint32())
			}
			name := fmt.Sprintf("f%d", i)
			if full = os.WriteFile(filepath.Join(d, name), b, 0o644); full == nil {
				saved[name] = b
			}
		}
		if full == nil || !strings.Contains(full.Error(), "no space") {
			t.Fatalf("got %v, want ENOSPC", full)
		}
		if len(saved) < 50 {
			t.Fatalf("only %d files of 200 kB fit 64 MiB", len(saved))
		}
		same(t, d, saved)
	})
	w.t = t
	must(t, w.mem.Close(ctx(t)))
	w.open()
	d := filepath.Join(w.mount("agent-104"), "agents/agent-104")
	same(t, d, saved)
	for name := range saved {
		must(t, os.Remove(filepath.Join(d, name)))
		break
	}
}

// TestFullDiskLargeFiles: the same with files whose drafts spill and whose chunks are files. What is refused leaves
// nothing behind: afterwards there is room for a small save.
func TestFullDiskLargeFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	needFuse(t)
	vol := t.TempDir()
	must(t, syscall.Mount("tmpfs", vol, "tmpfs", 0, "size=96m"))
	t.Cleanup(func() { must(t, syscall.Unmount(vol, 0)) })
	dir := filepath.Join(vol, "store")
	makeStore(t, dir)
	w := &world{t: t, dir: dir, log: testLogger()}
	w.open()
	t.Run("fill", func(t *testing.T) {
		w.t = t
		t.Cleanup(w.close) // after the unmount
		must(t, w.mem.Import(ctx(t), human, sample))
		d := filepath.Join(w.mount("agent-104"), "agents/agent-104")
		saved := map[string][]byte{}
		var full error
		for i := 0; i < 20 && full == nil; i++ {
			b := make([]byte, 9<<20)
			for j := range b {
				b[j] = byte(rand.Uint32())
			}
			name := fmt.Sprintf("f%d", i)
			if full = os.WriteFile(filepath.Join(d, name), b, 0o644); full == nil {
				saved[name] = b
			}
		}
		if full == nil || !strings.Contains(full.Error(), "no space") || len(saved) == 0 {
			t.Fatalf("got %v after %d files, want ENOSPC", full, len(saved))
		}
		t.Logf("%d files of 9 MiB fit 96 MiB", len(saved))
		same(t, d, saved)
		must(t, os.WriteFile(filepath.Join(d, "small"), []byte("fits"), 0o644))
		left, err := filepath.Glob(dir + "/scratch-*")
		must(t, err)
		equal(t, len(left), 0)
	})
}

func same(t *testing.T, dir string, saved map[string][]byte) {
	t.Helper()
	for name, want := range saved {
		got, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		if string(got) != string(want) {
			t.Fatalf("%s differs", name)
		}
	}
}
