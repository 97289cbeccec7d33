package scenario_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestLargeDrafts: 16 writers of 64 MiB at once do not grow the daemon: what is not committed yet lies in the store's
// scratch files. The daemon is the real one, without the race detector.
func TestLargeDrafts(t *testing.T) {
	if testing.Short() {
		t.Skip("a long scenario: 1 GiB")
	}
	needFuse(t)
	dir := t.TempDir()
	bin, store, mount := filepath.Join(dir, "memoryfs"), filepath.Join(dir, "store"), filepath.Join(dir, "m")
	if out, err := exec.Command("go", "build", "-o", bin, "memoryfs/cmd/memoryfs").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	env := []string{"MEMORYFS_STORE=" + store}
	step := func(args ...string) {
		t.Helper()
		if r := run(t, env, bin, args...); r.code != 0 {
			t.Fatalf("%q exits %d: %s", args, r.code, r.out)
		}
	}
	step("init", "--sample")
	step("mount", "--as", "agent-104", mount)
	t.Cleanup(func() { step("unmount", mount) })
	pid := strings.Fields(run(t, nil, "pgrep", "-f", "^"+bin+" serve").out)
	if len(pid) != 1 {
		t.Fatalf("want one daemon, there are %q", pid)
	}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			r := run(t, env, "sh", "-c", fmt.Sprintf(
				"head -c 67108864 /dev/urandom > %[1]s/src-%[2]d && cp %[1]s/src-%[2]d %[3]s/agents/agent-104/big-%[2]d && rm %[1]s/src-%[2]d", dir, i, mount))
			if r.code != 0 {
				t.Errorf("writer %d exits %d: %s", i, r.code, r.out)
			}
		})
	}
	all.Wait()
	status, err := os.ReadFile("/proc/" + pid[0] + "/status")
	must(t, err)
	peak, err := strconv.Atoi(string(regexp.MustCompile(`VmHWM:\s+(\d+)`).FindSubmatch(status)[1]))
	must(t, err)
	t.Logf("the daemon's peak is %d MB", peak/1000)
	if peak > 300_000 {
		t.Errorf("the daemon grew to %d kB, more than 300 MB", peak)
	}
	for i := range 16 {
		st, err := os.Stat(fmt.Sprintf("%s/agents/agent-104/big-%d", mount, i))
		must(t, err)
		equal(t, st.Size(), 64<<20)
	}
}

// TestNoLeakOverManySaves: 10,000 times open, save, close leave no goroutine and no descriptor behind.
func TestNoLeakOverManySaves(t *testing.T) {
	w := newWorld(t)
	m := w.mount("agent-104")
	saves := 10_000
	if testing.Short() {
		saves = 500
	}
	file := m + "/agents/agent-104/scratchpad.md"
	save := func(n int) {
		for i := range n {
			must(t, os.WriteFile(file, fmt.Appendf(nil, "%d\n", i), 0o644))
			f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
			must(t, err)
			if i%10 == 0 {
				_, err = f.WriteString("more\n")
				must(t, err)
			}
			must(t, f.Close())
		}
	}
	save(100)
	goroutines, fds := settled(t)
	save(saves)
	g, f := settled(t)
	if g > goroutines+20 || f > fds+10 {
		t.Errorf("%d goroutines and %d descriptors before, %d and %d after", goroutines, fds, g, f)
	}
}

// settled counts goroutines and descriptors once idle appends are over. go-fuse starts readers as it needs them, up to
// a fixed number, so these counts are no exact equality.
func settled(t *testing.T) (goroutines, fds int) {
	t.Helper()
	time.Sleep(2 * time.Second)
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return runtime.NumGoroutine(), len(list)
}

// TestSpilledDraft: a draft that lies in a scratch file is read, cut, and grown like any other, is whole once committed,
// and leaves no name in the store.
func TestSpilledDraft(t *testing.T) {
	need(t, "python3")
	w := newWorld(t)
	m := w.mount("agent-104")
	ok(t, m, `python3 -c "
import os
F=os.environ['M']+'/agents/agent-104/big'
block=bytes(range(256))*4096
f=os.open(F,os.O_CREAT|os.O_RDWR,0o644)
for i in range(20): os.write(f,block)
assert os.pread(f,256,19<<20)==block[:256]
os.ftruncate(f,(9<<20)+5)
os.pwrite(f,b'END',(12<<20))
assert os.fstat(f).st_size==(12<<20)+3
want=(block*9)+block[:5]
want+=bytes((12<<20)-len(want))+b'END'
assert os.pread(f,len(want)+1,0)==want
os.fsync(f)
os.pwrite(f,b'again',3)
want=want[:3]+b'again'+want[8:]
os.close(f)
assert open(F,'rb').read()==want
a=os.open(F,os.O_WRONLY|os.O_APPEND)
for i in range(10): os.write(a,block)
os.close(a)
assert open(F,'rb').read()==want+block*10
"`)
	equal(t, len(w.versions("agent-104", "agents/agent-104/big")), 3)
	left, err := filepath.Glob(w.dir + "/scratch-*")
	must(t, err)
	equal(t, len(left), 0)
	var st syscall.Stat_t
	must(t, syscall.Stat(m+"/agents/agent-104/big", &st))
	equal(t, st.Size, int64(22<<20)+3)
}
