package scenario_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const status = "projects/billing-redesign/current-status.md"

// writer is a program that replaces a file's content by "second\n"; $F is the file.
var writers = map[string]string{
	"bash redirection":   `echo second > $F`,
	"cp":                 `echo second > $TMP/new; cp $TMP/new $F`,
	"mv":                 `echo second > $F.tmp && mv $F.tmp $F`,
	"python open w":      `python3 -c "import os; f=open(os.environ['F'],'w'); f.write('second\n'); f.close()"`,
	"python os.replace":  `python3 -c "import os; F=os.environ['F']; f=open(F+'.tmp','w'); f.write('second\n'); f.close(); os.replace(F+'.tmp',F)"`,
	"node writeFileSync": `node -e "require('fs').writeFileSync(process.env.F,'second\n')"`,
	"go os.WriteFile":    `$GOWRITE $F second`,
	"truncate":           `truncate -s 0 $F`,
	"tee":                `echo second | tee $F >/dev/null`,
	"dd":                 `echo second | dd of=$F status=none`,
}

// goWriter builds the Go program once a test binary.
func goWriter(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(`package main

import (
	"fmt"
	"os"
)

func main() {
	if err := os.WriteFile(os.Args[1], []byte(os.Args[2]+"\n"), 0o644); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
`), 0o600))
	bin := filepath.Join(dir, "gowrite")
	if out, err := exec.Command("go", "build", "-o", bin, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin
}

// TestStaleWriterIsTold: both read, the first rewrites, the second's write fails with an error that its program sees; the
// first's bytes stay; after a fresh read the same command succeeds.
func TestStaleWriterIsTold(t *testing.T) {
	need(t, "python3", "node")
	gowrite := goWriter(t)
	for name, script := range writers {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.mount("agent-104"), w.mount("agent-205")
			env := []string{"F=" + b + "/" + status, "TMP=" + t.TempDir(), "GOWRITE=" + gowrite, "SCRIPT=" + script}
			ok(t, a, "cat $M/"+status)
			ok(t, b, "cat $F", env...)
			ok(t, a, "echo first > $M/"+status)
			r := sh(t, b, `timeout 5 bash -c "$SCRIPT"`, env...)
			if r.code == 0 || r.code == 124 {
				t.Fatalf("exit %d, must fail; it said %s", r.code, r.out)
			}
			if !strings.Contains(strings.ToLower(r.out), "temporarily unavailable") && !strings.Contains(r.out, "EAGAIN") {
				t.Fatalf("the error is not EAGAIN: %s", r.out)
			}
			equal(t, ok(t, a, "cat $M/"+status), "first\n")
			equal(t, ok(t, b, "cat $F", env...), "first\n")
			ok(t, b, `timeout 5 bash -c "$SCRIPT"`, env...)
			want := "second\n"
			if name == "truncate" {
				want = ""
			}
			equal(t, ok(t, a, "cat $M/"+status), want)
			ok(t, b, "grep -q EAGAIN $M/.memory/errors")
		})
	}
}

// TestSedReadsBeforeItSaves: an editor that reads again is current.
func TestSedReadsBeforeItSaves(t *testing.T) {
	w := newWorld(t)
	a, b := w.mount("agent-104"), w.mount("agent-205")
	ok(t, b, "cat $M/"+status)
	ok(t, a, "cat $M/"+status+"; echo first > $M/"+status)
	ok(t, b, "sed -i s/first/edited/ $M/"+status)
	equal(t, ok(t, a, "cat $M/"+status), "edited\n")
}

// TestUnlinkOfStaleFileIsRefused too: what was not read is not removed.
func TestUnlinkOfStaleFileIsRefused(t *testing.T) {
	w := newWorld(t)
	a, b := w.mount("agent-104"), w.mount("agent-205")
	ok(t, b, "cat $M/"+status)
	ok(t, a, "cat $M/"+status+"; echo first > $M/"+status)
	fails(t, b, "rm $M/"+status, "temporarily unavailable")
	ok(t, b, "cat $M/"+status+" && rm $M/"+status)
}

// TestSecondHandleOfAProcess: opened before the first one committed, it never succeeds.
func TestSecondHandleOfAProcess(t *testing.T) {
	need(t, "python3")
	w := newWorld(t)
	m := w.mount("agent-104")
	out := ok(t, m, `timeout 5 python3 - <<'E'
import os
F = os.environ['M'] + '/`+status+`'
for flags, new in (os.O_WRONLY, b'aaaa'), (os.O_RDWR, b'cccc'):
    a, b = os.open(F, os.O_WRONLY), os.open(F, flags)
    os.write(a, new); os.close(a)
    seen = None
    try:
        os.write(b, b'bbbb')
    except OSError as e:
        seen = e.strerror
    try:
        os.close(b)
    except OSError as e:
        seen = seen or e.strerror
    print(seen)
E`)
	equal(t, out, "Stale file handle\nStale file handle\n")
	if got := w.storeCat("agent-104", status); !strings.HasPrefix(got, "cccc") {
		t.Fatalf("the first writer's bytes are lost: %q", got)
	}
}

// lockstep makes two processes read, wait for each other, and write back with one line added.
const lockstep = `
import os, sys, multiprocessing as mp
mode, rounds, setsid, files = sys.argv[1], int(sys.argv[2]), sys.argv[3] == 'setsid', sys.argv[4:]

def work(me, path, barrier, q):
    if setsid: os.setsid()
    for r in range(rounds):
        with open(path) as f: old = f.read()
        barrier.wait()
        won = True
        try:
            if mode == 'w':
                f = open(path, 'w')
                f.write(old + 'line %d of %d\n' % (r, me))
                f.close()
            elif mode == 'r+':
                f = open(path, 'r+')
                try:
                    f.truncate(0)
                    f.write(old + 'line %d of %d\n' % (r, me))
                    f.flush()
                finally:
                    f.close()
            else:
                tmp = path + '.%d.tmp' % me
                with open(tmp, 'w') as f: f.write(old + 'line %d of %d\n' % (r, me))
                os.replace(tmp, path)
        except OSError as e:
            assert e.errno in (11, 116), e
            won = False
        q.put((r, me, won))
        barrier.wait()

barrier, q = mp.Barrier(2), mp.Queue()
ps = [mp.Process(target=work, args=(i, files[i % len(files)], barrier, q)) for i in range(2)]
for p in ps: p.start()
got = [q.get(timeout=15) for _ in range(2 * rounds)]
for p in ps: p.join()
text = open(files[0]).read()
for r in range(rounds):
    wins = [me for rr, me, won in got if rr == r and won]
    assert len(wins) == 1, (r, wins)
    assert text.count('line %d of %d\n' % (r, wins[0])) == 1, (r, wins)
assert text.count('line') == rounds
print('fine')
`

// TestLockstep: of two processes that read and then both write, exactly one wins each round and no line is lost; on two
// mounts, in two sessions of one mount, and as two children of one process.
func TestLockstep(t *testing.T) {
	need(t, "python3")
	rounds := "200"
	if testing.Short() {
		rounds = "20"
	}
	for _, mode := range []string{"w", "r+", "replace"} {
		for _, where := range []string{"two mounts", "two sessions", "one session"} {
			t.Run(mode+" "+where, func(t *testing.T) {
				w := newWorld(t)
				files := []string{w.mount("agent-104") + "/" + status}
				setsid := "setsid"
				switch where {
				case "two mounts":
					files = append(files, w.mount("agent-205")+"/"+status)
				case "one session":
					setsid = "no"
				}
				r := run(t, nil, "timeout", append([]string{"60", "python3", "-c", lockstep, mode, rounds, setsid}, files...)...)
				if r.code != 0 {
					t.Fatal(r.out)
				}
			})
		}
	}
}
