package scenario_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"memoryfs/fusefs"
)

// program saves $F, in which it makes "two" out of "second". Before it runs, its session has made $TMP/new of $F so.
type program struct {
	name string
	save string
	// reads: the program reads $F itself before it saves, so it is stale only when $OTHER, which is run in the place of
	// stale, commits between its read and its save.
	stale   string
	appends bool // its save adds to the end, so it never conflicts
}

func vim(options string) program {
	save := func(other string) string {
		return `vim -u NONE -es -V1 -c 'set ` + options + `' ` + other + ` -c '%s/second/two/' -c 'wq' $F`
	}
	return program{name: "vim, " + options, save: save(""), stale: save(`-c 'call system($OTHER)'`)}
}

func python(code string) string {
	return `python3 -c "import os,sys,pathlib;F=os.environ['F'];` + code + `"`
}

// slowed runs $OTHER while a program waits before some of its system calls.
func slowed(calls, command string) string {
	return `strace -f -qq -o /dev/null -e trace=` + calls + ` -e inject=` + calls + `:delay_enter=1500000 ` + command + ` & sleep 0.7; $OTHER; wait $!`
}

const newText = `n=open(os.environ['TMP']+'/new').read();`

var programs = []program{
	{name: "bash >", save: `echo "$(cat $TMP/new)" > $F`},
	{name: "bash >>", save: `echo two >> $F`, appends: true},
	{name: "cat >", save: `cat $TMP/new > $F`},
	{name: "tee", save: `tee $F < $TMP/new >/dev/null`},
	{name: "tee -a", save: `echo two | tee -a $F >/dev/null`, appends: true},
	{name: "cp", save: `cp $TMP/new $F`},
	{name: "cp --remove-destination", save: `cp --remove-destination $TMP/new $F`},
	{name: "install", save: `install -m 644 $TMP/new $F`},
	{name: "mv from the mount", save: `cp $TMP/new $F.tmp && mv $F.tmp $F`},
	{name: "mv from elsewhere", save: `mv $TMP/new $F`},
	{name: "dd", save: `dd if=$TMP/new of=$F status=none`},
	{name: "dd oflag=append conv=notrunc", save: `echo two | dd of=$F status=none oflag=append conv=notrunc`, appends: true},
	{name: "sed -i", save: `sed -i s/second/two/ $F`, stale: `sed -i -e "1e $OTHER" -e s/second/two/ $F`},
	{name: "perl -i", save: `perl -i -pe s/second/two/ $F`, stale: `perl -i -pe 'system($ENV{OTHER}) if $.==1; s/second/two/' $F`},
	{name: "python open w", save: python(newText + `f=open(F,'w');f.write(n);f.close()`)},
	{name: "python open w, never closed", save: python(newText + `f=open(F,'w');f.write(n)`)},
	{name: "python with open w", save: "python3 -c \"\nimport os\nn=open(os.environ['TMP']+'/new').read()\nwith open(os.environ['F'],'w') as f: f.write(n)\n\""},
	{name: "python open r+", save: python(`f=open(F,'r+');s=f.read();f.seek(0);f.truncate();f.write(s.replace('second','two'));f.close()`),
		stale: python(`f=open(F,'r+');s=f.read();os.system(os.environ['OTHER']);f.seek(0);f.truncate();f.write(s.replace('second','two'));f.close()`)},
	{name: "python pathlib", save: python(newText + `pathlib.Path(F).write_text(n)`)},
	{name: "python os.replace", save: python(newText + `open(F+'.tmp','w').write(n);os.replace(F+'.tmp',F)`)},
	{name: "node writeFileSync", save: `node -e "const fs=require('fs');fs.writeFileSync(process.env.F,fs.readFileSync(process.env.TMP+'/new'))"`},
	{name: "node fs.promises", save: `node -e "const fs=require('fs').promises;(async()=>{await fs.writeFile(process.env.F,await fs.readFile(process.env.TMP+'/new'))})()"`},
	{name: "node open w, write, fsync (VS Code)", save: `node -e "const fs=require('fs');const n=fs.readFileSync(process.env.TMP+'/new');const d=fs.openSync(process.env.F,'w');fs.writeSync(d,n);fs.fdatasyncSync(d);fs.closeSync(d)"`},
	{name: "go os.WriteFile", save: `$GOWRITE file`},
	{name: "go os.OpenFile, Close not checked", save: `$GOWRITE open`},
	{name: "write f___jb_tmp___, two renames (IntelliJ)", save: python(newText + `open(F+'___jb_tmp___','w').write(n);os.rename(F,F+'___jb_old___');os.rename(F+'___jb_tmp___',F);os.unlink(F+'___jb_old___')`)},
	vim("backupcopy=auto"), vim("backupcopy=yes"), vim("backup backupcopy=no"),
	{name: "nano", save: `python3 $NANO`, stale: `python3 $NANO $OTHER`},
	{name: "emacs", save: `emacs -Q --batch --eval '(progn (find-file (getenv "F")) (while (search-forward "second" nil t) (replace-match "two")) (save-buffer))'`,
		stale: `emacs -Q --batch --eval '(progn (find-file (getenv "F")) (while (search-forward "second" nil t) (replace-match "two")) (call-process (getenv "OTHER")) (save-buffer))'`},
	{name: "rsync", save: `rsync -I $TMP/new $F`, stale: slowed("rename,renameat,renameat2", `rsync -I $TMP/new $F`)},
	{name: "rsync --inplace", save: `rsync -I --inplace $TMP/new $F`, stale: slowed("ftruncate", `rsync -I --inplace $TMP/new $F`)},
	{name: "git checkout", save: `cd $(dirname $F) && git checkout -q two`},
	{name: "truncate", save: `truncate -s 5 $F`},
}

// nanoDriver types into nano on a terminal of its own: replaces "second" by "two" and saves. Given a program, it runs that
// after nano has read the file, and tells nano to save all the same.
const nanoDriver = `
import os, pty, sys, time, select, re, fcntl, struct, termios
pid, fd = pty.fork()
if pid: fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 250, 0, 0))
if pid == 0:
    os.environ['TERM'] = 'xterm'; time.sleep(.1)
    os.execvp('nano', ['nano', '-I', os.environ['F']])
screen = b''
whole = b''
def until(want, limit=10):
    global screen, whole
    end = time.time() + limit
    while time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try: got = os.read(fd, 65536)
            except OSError: return False
            screen += got; whole += got
        if re.search(want, screen): return True
    return False
def keys(s):
    os.write(fd, s)
assert until(rb'second line'), screen
if len(sys.argv) > 1: os.system(sys.argv[1])
keys(b'\x1b[B'); time.sleep(.2)
keys(b'\x1b[3~' * 6); time.sleep(.2)
keys(b'two'); time.sleep(.2)
screen = b''
keys(b'\x0f')
assert until(rb'Write|Name'), screen
screen = b''
keys(b'\r')
if until(rb'changed|modified|Continue', 2):
    screen = b''
    keys(b'y')
said = until(rb'Wrote|Error', 3)
text = re.sub(rb'\x1b[\[(][0-9;?]*[A-Za-z]', b'', screen).decode(errors='replace')
failed = 'Wrote' not in text
keys(b'\x18'); time.sleep(.2); keys(b'n')
until(rb'$^', 1)
try: os.kill(pid, 9)
except OSError: pass
if failed:
    print(re.sub(rb'\x1b[\[(][0-9;?]*[A-Za-z]', b' ', whole).decode(errors='replace'), file=sys.stderr)
    sys.exit(1)
`

const saver = `package main

import (
	"fmt"
	"os"
)

func main() {
	b, _ := os.ReadFile(os.Getenv("TMP") + "/new")
	var err error
	if os.Args[1] == "file" {
		err = os.WriteFile(os.Getenv("F"), b, 0o644)
	} else {
		var f *os.File
		if f, err = os.OpenFile(os.Getenv("F"), os.O_WRONLY|os.O_TRUNC, 0); err == nil {
			defer f.Close()
			_, err = f.Write(b)
		}
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
`

const programsDoc = "agents/agent-104/repo/doc.md"

// programWorld has a document in a git work tree, the mount that saves, and what the programs need.
type programWorld struct {
	*world
	mount string
	env   []string
	new   string // $TMP/new
}

func newProgramWorld(t *testing.T, gowrite string) programWorld {
	t.Helper()
	w := newWorld(t)
	winner := w.mountWith(fusefs.Config{Principal: "agent-104", Session: "winner"})
	p := programWorld{world: w, mount: w.mountWith(fusefs.Config{Principal: "agent-104", Session: "writer"})}
	tmp := plainDir(t)
	other, nano := filepath.Join(tmp, "other"), filepath.Join(tmp, "nano.py")
	must(t, os.WriteFile(other, []byte("#!/bin/sh\nexec sed -i s/last/LAST/ '"+winner+"/"+programsDoc+"' >/dev/null 2>&1\n"), 0o700))
	must(t, os.WriteFile(nano, []byte(nanoDriver), 0o600))
	p.new = filepath.Join(tmp, "new")
	p.env = []string{"F=" + p.mount + "/" + programsDoc, "TMP=" + tmp, "OTHER=" + other, "NANO=" + nano, "GOWRITE=" + gowrite,
		"GIT_CONFIG_GLOBAL=" + filepath.Join(tmp, "gitconfig"), "HOME=" + tmp}
	ok(t, p.mount, `mkdir $(dirname $F) && cd $(dirname $F) && git config --global user.name a && git config --global user.email a@b && git config --global --add safe.directory '*' &&
git init -q -b main && printf 'first line\nsecond line\nlast line\n' > doc.md && git add doc.md && git commit -qm 1 &&
git checkout -q -b two && sed -i s/second/two/ doc.md && git commit -qam 2 && git checkout -q main`, p.env...)
	return p
}

// plainDir is a temporary directory whose name needs no quoting: t.TempDir has the test's name in it.
func plainDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "programs")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}

// prepare reads the document as the session that will save it.
func (p programWorld) prepare(t *testing.T) {
	t.Helper()
	ok(t, p.mount, "sed s/second/two/ $F > $TMP/new", p.env...)
}

// cell is what a program did: exit status, error, the file afterwards, where its bytes are.
func cell(r result, file string) string {
	said := ""
	for phrase, name := range map[string]string{"emporarily unavailable": "EAGAIN", "EAGAIN": "EAGAIN", "tale file handle": "ESTALE",
		"ESTALE": "ESTALE", "ermission denied": "EACCES", "EACCES": "EACCES", "Operation not permitted": "EPERM"} {
		if strings.Contains(r.out, phrase) && !strings.Contains(said, name) {
			said = strings.TrimPrefix(said+" "+name, " ")
		}
	}
	switch {
	case said == "EAGAIN ESTALE":
		said = "ESTALE EAGAIN"
	case said == "" && strings.TrimSpace(r.out) == "":
		said = "Silent"
	case said == "":
		said = "a message of its own"
	}
	return fmt.Sprintf("exit %d, %s; %s", r.code, said, file)
}

func (p programWorld) saved(t *testing.T, prog program) string {
	t.Helper()
	p.prepare(t)
	before := p.versions("agent-104", programsDoc)
	if r := sh(t, p.mount, "timeout 60 bash -c \"$SAVE\"", append(p.env, "SAVE="+prog.save)...); r.code != 0 {
		t.Errorf("a normal save exits %d: %s", r.code, r.out)
	}
	after := p.versions("agent-104", programsDoc)
	if len(after) == 0 || after[0].Memory != before[0].Memory {
		t.Errorf("it is not the same memory any more")
	}
	if got := p.storeCat("agent-104", programsDoc); !strings.Contains(got, "two") && prog.name != "truncate" {
		t.Errorf("the file holds %q", got)
	}
	if n := len(after) - len(before); n != 1 {
		return fmt.Sprintf("%d versions", n)
	}
	return "1 version"
}

// stale returns the cell, after checking that nothing was lost.
func (p programWorld) stale(t *testing.T, prog program) string {
	t.Helper()
	p.prepare(t)
	script := prog.stale
	if script == "" {
		ok(t, p.mount, "$OTHER", p.env...)
		script = prog.save
	}
	r := sh(t, p.mount, "timeout 60 bash -c \"$SAVE\"", append(p.env, "SAVE="+script)...)
	got := p.storeCat("agent-104", programsDoc)
	t.Logf("exit %d: %s", r.code, r.out) // for go test -v: what a program of one's own says
	theirs, ours := strings.Contains(got, "LAST"), strings.Contains(got, "two")
	switch {
	case !theirs:
		t.Errorf("the other's save is lost, it holds %q; exit %d: %s", got, r.code, r.out)
	case prog.appends:
		if !ours || r.code != 0 {
			t.Errorf("an append conflicts: exit %d, it holds %q: %s", r.code, got, r.out)
		}
		return "exit 0; both are there"
	case ours:
		t.Errorf("both are there: %q", got)
	}
	where := "in the program: none of its bytes came to the mount"
	if prog.name == "truncate" {
		where = "it had none"
	}
	switch mine := sh(t, p.mount, "cat $M/.memory/conflicts/*/mine"); {
	case mine.code == 0 && strings.Contains(mine.out, "two"):
		where = "`.memory/conflicts/`"
	case mine.code == 0:
		t.Errorf("a conflict without the program's bytes: %q", mine.out)
	}
	return cell(r, "theirs stays; "+where)
}

func (p programWorld) denied(t *testing.T, prog program) string {
	t.Helper()
	p.prepare(t)
	before := p.storeCat("agent-104", programsDoc)
	owner := p.mountWith(fusefs.Config{Principal: human, Session: "owner"}) // reads it, and may not write it
	env := append(p.env, "F="+owner+"/"+programsDoc, "SAVE="+prog.save)
	r := sh(t, owner, "timeout 60 bash -c \"$SAVE\"", env...)
	equal(t, p.storeCat("agent-104", programsDoc), before)
	return cell(r, "untouched")
}

// TestProgramsTable: what each program does with a normal, a stale and a denied save is the table in docs/posix.md. No
// stale or denied save is silent. MEMORYFS_UPDATE_DOCS=1 writes the table anew.
func TestProgramsTable(t *testing.T) {
	if testing.Short() {
		t.Skip("a long scenario: 100 programs on mounts of their own")
	}
	need(t, "python3", "node", "perl", "vim", "nano", "emacs", "rsync", "git", "go", "strace")
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(saver), 0o600))
	gowrite := filepath.Join(dir, "save")
	if out, err := exec.Command("go", "build", "-o", gowrite, filepath.Join(dir, "main.go")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var table strings.Builder
	table.WriteString("| program | normal save | stale save | denied save |\n|---|---|---|---|\n")
	for _, prog := range programs {
		t.Run(prog.name, func(t *testing.T) {
			row := []string{prog.name}
			for _, column := range []struct {
				name string
				run  func(programWorld, *testing.T, program) string
			}{{"normal", programWorld.saved}, {"stale", programWorld.stale}, {"denied", programWorld.denied}} {
				t.Run(column.name, func(t *testing.T) {
					got := column.run(newProgramWorld(t, gowrite), t, prog)
					if strings.Contains(got, "Silent") {
						t.Errorf("%s: %s", column.name, got)
					}
					row = append(row, got)
				})
			}
			table.WriteString("| " + strings.Join(row, " | ") + " |\n")
		})
	}
	compareTable(t, table.String())
}

// compareTable holds a table against the one in docs/posix.md.
func compareTable(t *testing.T, table string) {
	t.Helper()
	const begin, end = "<!-- programs: made by TestProgramsTable -->\n", "<!-- programs: end -->\n"
	file := "../../docs/posix.md"
	raw, err := os.ReadFile(file)
	must(t, err)
	before, rest, found := strings.Cut(string(raw), begin)
	old, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", file)
	}
	if os.Getenv("MEMORYFS_UPDATE_DOCS") != "" {
		must(t, os.WriteFile(file, []byte(before+begin+table+end+after), 0o644))
	} else if old != table {
		t.Errorf("the table in %s is not what programs do here; MEMORYFS_UPDATE_DOCS=1 writes it anew:\n%s", file, table)
	}
}
