package scenario_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/posixtest"
	"golang.org/x/sys/unix"
)

// exceptions of posixtest.All, each with its reason.
var exceptions = map[string]string{
	"Link":                "hard links are refused (EPERM): a memory has one name",
	"LinkUnlinkRename":    "hard links are refused (EPERM): a memory has one name",
	"FcntlFlockLocksFile": "it wants two descriptors of one process to exclude each other; fcntl(2) says that they do not",
	"OpenSymlinkRace":     "its targets are absolute; a symlink that leaves the mount is refused (EPERM)",
	"SymlinkReadlink":     "its target is absolute; a symlink that leaves the mount is refused (EPERM)",
	"Tmpfile":             "O_TMPFILE answers EOPNOTSUPP, and programs fall back to a named file",
}

func TestPosix(t *testing.T) {
	for name, fn := range posixtest.All {
		t.Run(name, func(t *testing.T) {
			if why := exceptions[name]; why != "" {
				t.Skip(why)
			}
			w := newWorld(t)
			dir := w.mount("agent-104") + "/agents/agent-104/empty"
			must(t, os.Mkdir(dir, 0o755))
			fn(t, dir)
		})
	}
}

// TestRandomAgainstAFile is an fsx: random reads, writes, truncates, appends, mappings, syncs and reopenings on the mount
// and in memory must agree. It runs in a process of its own: one that maps a file of its own mount stops for ever when
// its garbage collector waits for the page fault that it would have to answer.
func TestRandomAgainstAFile(t *testing.T) {
	steps := "100000"
	if testing.Short() {
		steps = "5000"
	}
	w := newWorld(t)
	name := filepath.Join(w.mount("agent-104"), "agents/agent-104/fsx")
	r := runFor(t, 5*time.Minute, []string{fsxFile + "=" + name, fsxSteps + "=" + steps}, os.Args[0], "-test.run=^TestRandomChild$", "-test.v")
	if r.code != 0 {
		t.Fatal(r.out)
	}
}

const (
	fsxFile  = "MEMORYFS_FSX_FILE"
	fsxSteps = "MEMORYFS_FSX_STEPS"
)

// TestRandomChild is the other process.
func TestRandomChild(t *testing.T) {
	name := os.Getenv(fsxFile)
	if name == "" {
		t.Skip("the child of TestRandomAgainstAFile")
	}
	steps, err := strconv.Atoi(os.Getenv(fsxSteps))
	must(t, err)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	x := &fsx{t: t, name: name, seed: seed, r: rand.New(rand.NewPCG(seed, 1))}
	x.f = x.open(os.O_RDWR | os.O_CREATE)
	for x.step = range steps {
		x.one()
	}
	must(t, x.f.Close())
	all, err := os.ReadFile(name)
	must(t, err)
	x.check("at the end", all, x.model)
}

// fsx is a file and what it must hold.
type fsx struct {
	t     *testing.T
	name  string
	seed  uint64
	step  int
	r     *rand.Rand
	f     *os.File
	model []byte
}

const fsxMax = 70_000

func (x *fsx) open(flags int) *os.File {
	f, err := os.OpenFile(x.name, flags, 0o644)
	must(x.t, err)
	return f
}

func (x *fsx) check(what string, got, want []byte) {
	if !bytes.Equal(got, want) {
		x.t.Fatalf("seed %d step %d: %s: %d bytes differ from the model's %d", x.seed, x.step, what, len(got), len(want))
	}
}

func (x *fsx) grow(size int) {
	if size > len(x.model) {
		x.model = append(x.model, make([]byte, size-len(x.model))...)
	}
}

// one does one random step.
func (x *fsx) one() {
	off, n := x.r.IntN(fsxMax), 1+x.r.IntN(1+x.r.IntN(5000))
	switch op := x.r.IntN(100); {
	case op < 40:
		buf := make([]byte, n)
		k, _ := x.f.ReadAt(buf, int64(off))
		x.check("read", buf[:k], x.model[min(off, len(x.model)):min(off+n, len(x.model))])
	case op < 75:
		b := bytes.Repeat([]byte{byte('a' + x.r.IntN(26))}, n)
		_, err := x.f.WriteAt(b, int64(off))
		must(x.t, err)
		x.grow(off + n)
		copy(x.model[off:], b)
	case op < 82:
		x.truncate(off)
	case op < 86:
		x.append(n)
	case op < 90 && len(x.model) > 0:
		x.mapped()
	case op < 92:
		must(x.t, x.f.Sync())
	case op < 94:
		must(x.t, x.f.Close())
		x.f = x.open(os.O_RDWR)
	case op < 96:
		st, err := os.Stat(x.name)
		must(x.t, err)
		if st.Size() != int64(len(x.model)) {
			x.t.Fatalf("seed %d step %d: size %d, the model has %d", x.seed, x.step, st.Size(), len(x.model))
		}
	case op < 97:
		all, err := os.ReadFile(x.name)
		must(x.t, err)
		x.check("read all", all, x.model)
	}
	if len(x.model) > fsxMax {
		x.truncate(fsxMax / 2)
	}
}

func (x *fsx) truncate(size int) {
	must(x.t, x.f.Truncate(int64(size)))
	if size < len(x.model) {
		x.model = x.model[:size:size]
	}
	x.grow(size)
}

func (x *fsx) append(n int) {
	g := x.open(os.O_WRONLY | os.O_APPEND)
	b := bytes.Repeat([]byte{'+'}, n)
	_, err := g.Write(b)
	must(x.t, err)
	must(x.t, g.Close())
	x.model = append(x.model, b...)
	// x.f was opened before g committed: until it reads, a write through it is stale, as promised.
	_, _ = x.f.ReadAt(make([]byte, 1), 0)
}

// mapped reads and writes through a shared mapping.
func (x *fsx) mapped() {
	mm, err := unix.Mmap(int(x.f.Fd()), 0, len(x.model), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	must(x.t, err)
	x.check("mapping", mm, x.model)
	for range 3 {
		i := x.r.IntN(len(x.model))
		mm[i]++
		x.model[i]++
	}
	must(x.t, unix.Msync(mm, unix.MS_SYNC))
	must(x.t, unix.Munmap(mm))
}
