package scenario_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The cases of shared/cases/field.md, by their numbers. M is a writable directory of the mount.

func field(t *testing.T, programs ...string) (*world, string) {
	t.Helper()
	need(t, append(programs, "bash")...)
	w := newWorld(t)
	return w, w.mount("agent-104") + "/agents/agent-104"
}

func TestO01Fsync(t *testing.T) {
	_, m := field(t, "vim", "strace", "python3")
	ok(t, m, `printf 'a\n' >$M/f.md; vim -u NONE -es -c 'set fsync' -c 's/a/b/' -c wq $M/f.md`)
	equal(t, ok(t, m, "cat $M/f.md"), "b\n")
	out := ok(t, m, `strace -f -e trace=fsync vim -u NONE -es -c 'set fsync' -c 's/b/c/' -c wq $M/f.md 2>&1 | grep fsync`)
	if !strings.Contains(out, "= 0") || strings.Contains(out, "= -1") {
		t.Fatal(out)
	}
	ok(t, m, `python3 -c "import os;d=os.open('$M',0);os.fsync(d)"`)
}

func TestO02SecondSave(t *testing.T) {
	_, m := field(t, "vim")
	out := ok(t, m, `printf 'a\n' >$M/f; stat -c %y $M/f; sleep 1.2; stat -c %y $M/f`)
	lines := strings.Split(out, "\n")
	equal(t, lines[0], lines[1])
	ok(t, m, `vim -u NONE -es -c 'norm ob' -c w -c 'sleep 1' -c 'norm oc' -c w -c q $M/f`)
	equal(t, ok(t, m, "cat $M/f"), "a\nb\nc\n")
}

func TestO03EmacsLockLink(t *testing.T) {
	w, m := field(t, "emacs")
	equal(t, ok(t, m, `ln -s 'u@h.3880:1455126981' "$M/.#z"; readlink "$M/.#z"; rm "$M/.#z"`), "u@h.3880:1455126981\n")
	ok(t, m, `emacs -Q --batch --eval '(progn (find-file "'$M'/z") (insert "x") (save-buffer))'`)
	equal(t, ok(t, m, "cat $M/z"), "x")
	equal(t, len(w.versions("agent-104", "agents/agent-104/z")), 1)
}

func TestO04InodeIdentity(t *testing.T) {
	_, m := field(t)
	ok(t, m, `echo x>$M/f; a=$(stat -c %i $M/f); find $M >/dev/null; [ $a = $(stat -c %i $M/f) ] && [ $a = $(ls -i $M/f | cut -d' ' -f1) ]`)
	ok(t, m, `echo y>$M/.t; i=$(stat -c %i $M/.t); mv $M/.t $M/f; [ $i = $(stat -c %i $M/f) ]`)
	ok(t, m, `echo y>$M/f.tmp; i=$(stat -c %i $M/f.tmp); mv $M/f.tmp $M/f; [ $i = $(stat -c %i $M/f) ]`)
}

func TestO04InodeNumbersOverRemount(t *testing.T) {
	w := newWorld(t)
	list := `find $M -printf '%i %P\n' | sort -k2`
	a := ok(t, w.mount("agent-104"), list)
	b := ok(t, w.mount("agent-104"), list)
	equal(t, a, b)
	if strings.HasPrefix(a, "0 ") || strings.Contains(a, "\n0 ") {
		t.Fatal("an inode number is 0")
	}
}

func TestO05ShorterOverwrite(t *testing.T) {
	w, m := field(t)
	equal(t, ok(t, m, `printf 'AAAAAAAAAAAAAAAAAAAA\n' >$M/t; wc -c <$M/t; printf 'BB\n' >$M/t; wc -c <$M/t; cat -A $M/t`), "21\n3\nBB$\n")
	equal(t, w.storeCat("agent-104", "agents/agent-104/t"), "BB\n")
	equal(t, len(w.versions("agent-104", "agents/agent-104/t")), 2)
}

func TestO06SelfConflict(t *testing.T) {
	w, m := field(t, "python3")
	ok(t, m, `for i in $(seq 100); do printf create-test >$M/f; printf overwrite-test >$M/f; done`)
	equal(t, w.storeCat("agent-104", "agents/agent-104/f"), "overwrite-test")
	equal(t, len(w.versions("agent-104", "agents/agent-104/f")), 200)
	ok(t, m, `python3 -c "
f=open('$M/f','r+');f.write('A');f.flush();f.truncate(1);f.write('B');f.flush();f.write('C');f.close()"`)
	equal(t, w.storeCat("agent-104", "agents/agent-104/f"), "ABC")
}

// TestO06IdenticalBytesAreNoConflict: somebody writes the very bytes that we are about to commit.
func TestO06IdenticalBytesAreNoConflict(t *testing.T) {
	w, m := field(t)
	w.storePut("agent-104", "agents/agent-104/g", "old\n")
	f, err := os.OpenFile(filepath.Join(m, "g"), os.O_RDWR, 0)
	must(t, err)
	_, err = f.Read(make([]byte, 10))
	must(t, err)
	_, err = f.WriteAt([]byte("new\n"), 0)
	must(t, err)
	w.storePut("agent-104", "agents/agent-104/g", "new\n")
	must(t, f.Close())
	equal(t, len(w.versions("agent-104", "agents/agent-104/g")), 2)
}

func TestO07FlushBeforeData(t *testing.T) {
	w, m := field(t, "python3")
	equal(t, ok(t, m, `echo 1 >$M/f; printf a >$M/f; echo b >>$M/f; cat $M/f`), "ab\n")
	equal(t, len(w.versions("agent-104", "agents/agent-104/f")), 3)
	equal(t, ok(t, m, `(echo a; sleep 0.3; echo b) >$M/f; cat $M/f`), "a\nb\n")
	ok(t, m, `python3 -c "import os,time;f=open('$M/f','w');p=os.fork();(os._exit(0) if p==0 else (os.waitpid(p,0),f.write('parent\n'),f.close()))"`)
	equal(t, ok(t, m, "cat $M/f"), "parent\n")
	ok(t, m, ": > $M/f")
	time.Sleep(50 * time.Millisecond) // the last close is not waited for by anybody
	equal(t, w.storeCat("agent-104", "agents/agent-104/f"), "")
}

func TestO08NoClientHangs(t *testing.T) {
	need(t, "python3", "node")
	for name, script := range map[string]string{
		"bash":   `exec 3<>$F; read -r <&3; eval \"$PUT\"; echo late >&3`,
		"python": `python3 -c "import os;f=os.open(os.environ['F'],os.O_RDWR);os.read(f,100);os.system(os.environ['PUT']);os.write(f,b'late')"`,
		"node":   `node -e "const fs=require('fs');const f=fs.openSync(process.env.F,'r+');fs.readSync(f,Buffer.alloc(100));require('child_process').execSync(process.env.PUT);fs.writeSync(f,'late')"`,
		"perl":   `perl -e 'open(my \$f,\"+<\",\$ENV{F}) or die; sysread(\$f,my \$x,100); system(\$ENV{PUT}); defined syswrite(\$f,\"late\") or die \"\$!\"'`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a, b := w.mount("agent-104"), w.mount("agent-205")
			put := `cat ` + b + "/" + status + ` >/dev/null; echo other > ` + b + "/" + status
			r := sh(t, a, `timeout 5 bash -c "$SCRIPT"`, "F="+a+"/"+status, "PUT="+put, "SCRIPT="+strings.ReplaceAll(strings.ReplaceAll(script, `\$`, `$`), `\"`, `"`))
			if r.code == 0 || r.code == 124 || !strings.Contains(r.out, "Stale file handle") && !strings.Contains(r.out, "-116") {
				t.Fatalf("exit %d: %s", r.code, r.out)
			}
			equal(t, w.storeCat("agent-104", status), "other\n")
		})
	}
}

func TestO09FailedSizeChange(t *testing.T) {
	w, m := field(t)
	fails(t, m, `printf keep >$M/f; truncate -s $((64*1024*1024+1)) $M/f`, "File too large")
	fails(t, m, `fallocate -l 1G $M/f`, "File too large")
	equal(t, ok(t, m, "cat $M/f"), "keep")
	equal(t, len(w.versions("agent-104", "agents/agent-104/f")), 1)
}

func TestO10Sparse(t *testing.T) {
	_, m := field(t, "python3")
	out := t.TempDir() + "/out"
	ok(t, m, `python3 -c "f=open('$M/f','wb');f.seek(16384);f.write(b'ABC');f.seek(86000);f.write(b'END!')"; [ $(wc -c <$M/f) = 86004 ]
timeout 10 cp --sparse=always $M/f $OUT && cmp $M/f $OUT`, "OUT="+out)
	ok(t, m, `python3 -c "
import os,errno
f=os.open('$M/f',os.O_RDONLY)
try: os.lseek(f,86004,os.SEEK_DATA); raise SystemExit('no error')
except OSError as e: assert e.errno==errno.ENXIO,e"`)
}

func TestO11RenameFamily(t *testing.T) {
	_, m := field(t, "python3")
	equal(t, ok(t, m, `echo atomic >$M/t; mv $M/t $M/r; stat -c %s $M/r; cat $M/r`), "7\natomic\n")
	equal(t, ok(t, m, `echo b>$M/b; echo c>$M/c; mv $M/b $M/c; cat $M/c; ls $M`), "b\nc\nr\nscratchpad.md\n")
	fails(t, m, `mkdir -p $M/s $M/d/x; python3 -c "import os;os.rename('$M/s','$M/d')"`, "not empty")
	ok(t, m, `[ -d $M/s ] && [ -d $M/d/x ]`)
	equal(t, ok(t, m, `mkdir -p $M/a/b; exec 3>>$M/a/b/f; mv $M/a $M/z; echo late >&3; exec 3>&-; cat $M/z/b/f`), "late\n")
	fails(t, m, `python3 -c "import os;os.rename('$M/z','$M/z/b/z')"`, "Invalid argument")
	fails(t, m, `python3 -c "import os;os.rename('$M/r','$M/s')"`, "Is a directory")
	fails(t, m, `python3 -c "import os;os.rename('$M/s','$M/r')"`, "Not a directory")
}

func TestO12UnlinkedButOpen(t *testing.T) {
	w, m := field(t, "python3")
	ok(t, m, `python3 - <<'E'
import os
M = os.environ['M']
os.mkdir(M+'/1')
fd = os.open(M+'/1/2', os.O_CREAT|os.O_RDWR)
dirfd = os.open(M+'/1', os.O_RDONLY)
os.unlink(M+'/1/2')
os.rmdir(M+'/1')
assert os.write(fd, b'hello') == 5
os.lseek(fd, 0, 0)
assert os.read(fd, 10) == b'hello'
os.ftruncate(fd, 2)
os.fchmod(fd, 0o600)
st = os.fstat(fd)
assert st.st_nlink == 0 and st.st_size == 2, st
os.close(fd); os.close(dirfd)
fd = os.open(M+'/f', os.O_CREAT|os.O_RDWR)
os.write(fd, b'old')
os.unlink(M+'/f')
with open(M+'/f', 'w') as g: g.write('NEW')
os.lseek(fd, 0, 0)
assert os.read(fd, 10) == b'old'
os.close(fd)
assert open(M+'/f').read() == 'NEW'
names = os.listdir(M)
assert not [n for n in names if n.startswith('.fuse')], names
E`)
	equal(t, len(w.versions("agent-104", "agents/agent-104/f")), 1)
}

func TestO13Cwd(t *testing.T) {
	w, m := field(t)
	out := ok(t, m, `mkdir $M/sub; cd $M/sub; readlink /proc/self/cwd; echo x > ../y; touch ../sub; sleep 0.3; readlink /proc/self/cwd`)
	if strings.Contains(out, "deleted") {
		t.Fatal(out)
	}
	_ = w
}

func TestO14NameLength(t *testing.T) {
	_, m := field(t, "python3")
	ok(t, m, `python3 - <<'E'
import os, errno
M = os.environ['M']
def check(n, name):
    p = M + '/' + name
    if n <= 255:
        open(p, 'w').close(); os.rename(p, p); os.unlink(p)
        os.mkdir(p); os.rmdir(p)
        os.symlink('x', p); os.unlink(p)
        return
    open(M + '/src', 'w').close()
    for f in (lambda: open(p, 'w'), lambda: os.mkdir(p), lambda: os.symlink('x', p), lambda: os.link(M + '/src', p), lambda: os.rename(M + '/src', p)):
        try: f(); raise SystemExit('accepted %d' % n)
        except OSError as e: assert e.errno == errno.ENAMETOOLONG, e
for n in 255, 256, 1024: check(n, 'x' * n)
check(256, '飞' * 85 + 'x'); check(255, '飞' * 85)
for name in ('new\nline', 'dot.', 'space ', 'back\\slash', "quo'te\"s", 'tab\t'):
    with open(M + '/' + name, 'w') as f: f.write(name)
    assert name in os.listdir(M) and open(M + '/' + name).read() == name
bad = os.fsencode(M) + b'/bad\xff\xfename'
with open(bad, 'wb') as f: f.write(b'1')
assert b'bad\xff\xfename' in os.listdir(os.fsencode(M)) and open(bad, 'rb').read() == b'1'
nfc, nfd = M + '/caf\u00e9', M + '/cafe\u0301'
open(nfc, 'w').write('nfc'); open(nfd, 'w').write('nfd')
assert open(nfc).read() == 'nfc' and open(nfd).read() == 'nfd'
E`)
	equal(t, ok(t, m, "getconf NAME_MAX $M"), "255\n")
}

func TestO15HardLinks(t *testing.T) {
	_, m := field(t)
	fails(t, m, `echo first >$M/f1; ln $M/f1 $M/f2`, "Operation not permitted")
}

func TestO17Appends(t *testing.T) {
	w, m := field(t, "python3")
	ok(t, m, `python3 - <<'E'
import os, multiprocessing as mp
F = os.environ['M'] + '/log'
def work(i):
    os.setsid()
    f = os.open(F, os.O_WRONLY|os.O_CREAT|os.O_APPEND)
    for k in range(100):
        os.write(f, (('{"p":%d,"k":%d,"x":"' % (i, k)).ljust(297, 'x') + '"}\n').encode())
    os.close(f)
ps = [mp.Process(target=work, args=(i,)) for i in range(4)]
[p.start() for p in ps]; [p.join() for p in ps]
E`)
	ok(t, m, `python3 - <<'E'
import os, json
lines = open(os.environ['M'] + '/log').read().splitlines()
got = [(d['p'], d['k']) for d in map(json.loads, lines)]
assert sorted(got) == [(p, k) for p in range(4) for k in range(100)], len(got)
E`)
	ok(t, m, `python3 - <<'E'
import os, multiprocessing as mp
F = os.environ['M'] + '/big'
def work(i):
    os.setsid()
    for k in range(5):
        f = os.open(F, os.O_WRONLY|os.O_CREAT|os.O_APPEND)
        assert os.write(f, (bytes([65 + i]) * 716799) + b'\n') == 716800
        os.close(f)
ps = [mp.Process(target=work, args=(i,)) for i in range(2)]
[p.start() for p in ps]; [p.join() for p in ps]
lines = open(F, 'rb').read().split(b'\n')[:-1]
assert len(lines) == 10 and all(len(set(l)) == 1 and len(l) == 716799 for l in lines), [len(l) for l in lines]
E`)
	_ = w
}

func TestO17IdleAppendCommits(t *testing.T) {
	w, m := field(t, "python3")
	ok(t, m, `python3 -c "
import os,time
f=os.open('$M/log',os.O_WRONLY|os.O_CREAT|os.O_APPEND)
os.write(f,b'first\n'); os.close(f)
f=os.open('$M/log',os.O_WRONLY|os.O_APPEND)
os.write(f,b'second\n')
time.sleep(1.7)
os._exit(0)" & sleep 1.5; true`)
	equal(t, w.storeCat("agent-104", "agents/agent-104/log"), "first\nsecond\n")
}

func TestO18ChangedBehindTheCache(t *testing.T) {
	w, m := field(t)
	equal(t, ok(t, m, `echo foo >$M/T; stat -c %s $M/T; echo longer >$M/T.new; mv $M/T.new $M/T; stat -c %s $M/T`), "4\n7\n")
	for _, text := range []string{"short\n", strings.Repeat("a longer text\n", 1000), "s\n", strings.Repeat("x", 5000)} {
		ok(t, m, "cat $M/T >/dev/null; stat $M/T >/dev/null")
		w.storePut("agent-104", "agents/agent-104/T", text)
		equal(t, ok(t, m, `stat -c %s $M/T; cat $M/T`), strconv.Itoa(len(text))+"\n"+text)
	}
}

func TestO18WithAnOpenDescriptor(t *testing.T) {
	w, m := field(t)
	ok(t, m, "echo one > $M/T")
	f, err := os.Open(filepath.Join(m, "T"))
	must(t, err)
	defer f.Close()
	buf := make([]byte, 1<<16)
	for _, text := range []string{"longer than before\n", "s\n", strings.Repeat("y", 9000)} {
		w.storePut("agent-104", "agents/agent-104/T", text)
		n, _ := f.ReadAt(buf, 0)
		equal(t, string(buf[:n]), text)
		st, err := f.Stat()
		must(t, err)
		equal(t, st.Size(), int64(len(text)))
	}
}

func TestO19Listing(t *testing.T) {
	_, m := field(t, "python3")
	n := "2000"
	if testing.Short() {
		n = "500"
	}
	ok(t, m, `python3 - <<'E'
import os
M, N = os.environ['M'] + '/many', int(os.environ['N'])
os.mkdir(M)
names = {('%d-' % i) + 'n' * (i % 240) for i in range(N)}
for n in names: os.close(os.open(M + '/' + n, os.O_CREAT|os.O_WRONLY))
got = os.listdir(M)
assert len(got) == len(set(got)) and set(got) == names, (len(got), len(names))
E
[ $(ls -f $M/many | sort -u | wc -l) = $((N + 2)) ] && rm -rf $M/many && [ ! -e $M/many ]`, "N="+n)
	src := t.TempDir() + "/rd.c"
	must(t, os.WriteFile(src, []byte(`#include <dirent.h>
#include <stdio.h>
#include <fcntl.h>
#include <unistd.h>
int main() {
	DIR *d = opendir("."); int n = 0; struct dirent *e;
	while ((e = readdir(d))) if (e->d_name[0] != '.') { n++; if (unlink(e->d_name)) return 2; }
	if (n != 30) { printf("%d\n", n); return 3; }
	close(open("new", O_CREAT | O_WRONLY, 0644));
	rewinddir(d); n = 0;
	while ((e = readdir(d))) if (e->d_name[0] == 'n') n++;
	return n != 1;
}
`), 0o600))
	ok(t, m, `mkdir $M/d && cd $M/d && touch $(seq 30) && gcc -o $SRC.bin $SRC && $SRC.bin`, "SRC="+src)
}

func TestO20Mmap(t *testing.T) {
	w, m := field(t, "python3", "rg")
	w.storePut("agent-104", "agents/agent-104/f", "abcdef\n")
	ok(t, m, `python3 -c "import mmap;f=open('$M/f','r');print(mmap.mmap(f.fileno(),0,mmap.MAP_SHARED,mmap.PROT_READ)[:3])"; rg -q abc $M/f`)
	ok(t, m, `python3 - <<'E'
import mmap, os
F = os.environ['M'] + '/f'
f = os.open(F, os.O_RDWR)
mm = mmap.mmap(f, 0, mmap.MAP_SHARED, mmap.PROT_READ|mmap.PROT_WRITE)
mm[0:1] = b'X'
mm.flush()
assert os.pread(f, 3, 0) == b'Xbc', os.pread(f, 3, 0)
mm.close(); os.close(f)
assert open(F).read() == 'Xbcdef\n', open(F).read()
E`)
	equal(t, w.storeCat("agent-104", "agents/agent-104/f"), "Xbcdef\n")
}

func TestO21CreateRaces(t *testing.T) {
	w, m := field(t, "python3")
	ok(t, m, `python3 - <<'E'
import os, multiprocessing as mp
M = os.environ['M']
def plain(i, b):
    for k in range(60):
        b.wait()
        os.close(os.open(M + '/p%d' % k, os.O_CREAT|os.O_WRONLY))
def excl(i, b, q):
    if i % 2: os.setsid()
    for k in range(60):
        b.wait()
        try: os.close(os.open(M + '/e%d' % k, os.O_CREAT|os.O_EXCL|os.O_WRONLY)); q.put(k)
        except FileExistsError: pass
for f, more in (plain, ()), (excl, (mp.Queue(),)):
    b = mp.Barrier(4)
    ps = [mp.Process(target=f, args=(i, b) + more) for i in range(4)]
    [p.start() for p in ps]
    if more: won = sorted(more[0].get(timeout=10) for _ in range(60)); assert won == list(range(60)), won
    [p.join() for p in ps]
    assert all(p.exitcode == 0 for p in ps), [p.exitcode for p in ps]
E`)
	if r := sh(t, m, "stat $M/n"); r.code == 0 {
		t.Fatal("n is there")
	}
	w.storePut("agent-104", "agents/agent-104/n", "x")
	ok(t, m, "stat $M/n")
}

func TestO22Locks(t *testing.T) {
	_, m := field(t, "flock", "python3")
	equal(t, ok(t, m, `touch $M/l; flock $M/l sleep 1 & sleep 0.2; flock -n $M/l true; echo $?; wait`), "1\n")
	ok(t, m, `flock $M/l sleep 1 & sleep 0.1; for i in $(seq 20); do flock $M/l true & done; timeout 1 ls $M >/dev/null; r=$?; wait; exit $r`)
	ok(t, m, `python3 -c "
import fcntl,os
f=open('$M/l','r+'); fcntl.lockf(f,fcntl.LOCK_EX,10,0)
if os.fork()==0:
    g=open('$M/l','r+'); fcntl.lockf(g,fcntl.LOCK_EX|fcntl.LOCK_NB,10,20)
    try: fcntl.lockf(g,fcntl.LOCK_EX|fcntl.LOCK_NB,10,5); os._exit(1)
    except OSError: os._exit(0)
assert os.wait()[1]==0"`)
}

func TestSqlite(t *testing.T) {
	_, m := field(t, "sqlite3")
	for _, mode := range []string{"delete", "truncate", "wal"} {
		t.Run(mode, func(t *testing.T) {
			ok(t, m, `sqlite3 $M/`+mode+`.db "pragma journal_mode=`+mode+`; create table t(a); insert into t values(1);" &&
for i in 1 2 3 4 5; do sqlite3 $M/`+mode+`.db ".timeout 10000" "insert into t values($i)" & done; wait
[ "$(sqlite3 $M/`+mode+`.db 'select count(*) from t; pragma integrity_check')" = "6
ok" ]`)
		})
	}
}

func TestO23GitObjects(t *testing.T) {
	_, m := field(t, "python3")
	ok(t, m, `python3 -c "import os;f=os.open('$M/o',os.O_CREAT|os.O_EXCL|os.O_RDWR,0o444);os.write(f,b'x');os.close(f);print(oct(os.stat('$M/o').st_mode))"; rm -f $M/o; (umask 333; touch $M/q); [ $(stat -c %a $M/q) = 444 ]`)
}

func TestO24GitWorkflow(t *testing.T) {
	_, m := field(t, "git", "strace")
	ok(t, m, `export HOME=$TMP GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
mkdir $M/r && cd $M/r && git init -q -b main . && echo a>f && git add f && git commit -qm 1 && echo b>>f && git commit -qam 2 && git checkout -qb x && git rebase -q main &&
echo c>>f && git stash -q && git gc -q && git fsck --strict && git clone -q . ../r2 && [ -z "$(find . -name '*.lock')" ] && sleep 1.1 && git status --porcelain &&
! strace -f -e trace=openat git status --porcelain 2>&1 | grep '"f"'`, "TMP="+t.TempDir())
}

func TestO25MetadataCopies(t *testing.T) {
	_, m := field(t, "rsync", "tar", "setfattr")
	ok(t, m, `cp -a /etc/hostname $M/h && sed -i s/./X/ $M/h
mkdir -p $TMP/src/sub; echo 1 > $TMP/src/a; echo 2 > $TMP/src/sub/b; setfattr -n user.color -v red $TMP/src/a 2>/dev/null
rsync -aX --delete $TMP/src/ $M/s/ && [ -z "$(rsync -aX -n --itemize-changes $TMP/src/ $M/s/)" ]`, "TMP="+t.TempDir())
	ok(t, m, `mkdir $M/t && tar --xattrs -C $M -cf - s | tar --xattrs -C $M/t -xf - && diff -r $M/s $M/t/s`)
	equal(t, ok(t, m, `touch -d '2011-04-08 08:08:45.999999900Z' $M/h; TZ=UTC stat -c %y $M/h; touch -a $M/h; TZ=UTC stat -c %y $M/h`),
		"2011-04-08 08:08:45.999999900 +0000\n2011-04-08 08:08:45.999999900 +0000\n")
	ok(t, m, `setfattr -n user.k -v v $M/h && [ "$(getfattr --only-values -n user.k $M/h 2>/dev/null)" = v ] && mv $M/h $M/h2 && getfattr -n user.k $M/h2 >/dev/null 2>&1 && setfattr -x user.k $M/h2`)
	fails(t, m, `setfattr -n user.memory.author -v me $M/h2`, "not permitted")
	fails(t, m, `setfattr -n trusted.k -v v $M/h2`, "not supported")
}

func TestO26Statfs(t *testing.T) {
	_, m := field(t)
	ok(t, m, `df -P $M | awk 'NR==2 && $2 > 0 && $4 > 0 {ok=1} END {exit !ok}' && echo x>$M/f && [ $(stat -c %b $M/f) -gt 0 ] && du -k $M/f`)
}

func TestO30ThreadsAndGoneProcesses(t *testing.T) {
	w, m := field(t, "python3")
	ok(t, m, `python3 -c "
import threading
def f():
    with open('$M/t','w') as g: g.write('thread')
x=threading.Thread(target=f); x.start(); x.join()" && [ $(cat $M/t) = thread ]`)
	ok(t, m, `bash -c 'echo gone > $M/g & exit' ; sleep 0.2; [ $(cat $M/g) = gone ]`)
	equal(t, w.versions("agent-104", "agents/agent-104/t")[0].Prov.Process, "python3")
}

func TestO32PlantedSymlink(t *testing.T) {
	_, m := field(t)
	fails(t, m, `ln -s /etc/shadow $M/leak.md`, "not permitted")
	fails(t, m, `ln -s ../../../x $M/leak.md`, "not permitted")
	ok(t, m, `ln -s ../agent-104/scratchpad.md $M/fine && cat $M/fine`)
}
