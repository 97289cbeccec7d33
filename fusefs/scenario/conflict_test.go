package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"memoryfs/backend"
	"memoryfs/fusefs"
)

// onlyConflict is the one entry of .memory/conflicts.
func onlyConflict(t *testing.T, mount string) string {
	t.Helper()
	name := strings.TrimSpace(ok(t, mount, "ls $M/.memory/conflicts"))
	if name == "" || strings.Contains(name, "\n") {
		t.Fatalf("want one conflict, there are: %q", name)
	}
	return mount + "/.memory/conflicts/" + name
}

// losers are programs that lose a race after they have read or opened $F; commit is run in between and changes the last
// line. Each makes "two" out of "second line", its own way.
var losers = map[string]string{
	"written before the other's commit, closed after it": `(until test -e $TMP/ready; do sleep 0.01; done; $OTHER; touch $TMP/done) &
python3 -c "
import os,time
f=open(os.environ['F'],'r+'); s=f.read(); f.seek(0); f.truncate(); f.write(s.replace('second','two')); f.flush()
open(os.environ['TMP']+'/ready','w')
while not os.path.exists(os.environ['TMP']+'/done'): time.sleep(0.01)
f.close()"`,
	"read, the other commits, then written": `python3 -c "
import os
f=open(os.environ['F'],'r+'); s=f.read()
os.system(os.environ['OTHER'])
try:
  f.seek(0); f.write(s.replace('second','two-xx')); f.flush()
finally: os.close(f.fileno())"`,
	"os.replace": `python3 -c "
import os
F=os.environ['F']; s=open(F).read()
os.system(os.environ['OTHER'])
open(F+'.tmp','w').write(s.replace('second','two'))
os.replace(F+'.tmp',F)"`,
	"sed -i": `sed -i -e "1e $OTHER" -e s/second/two/ $F`,
}

// TestLostBytesAreKept: whatever the way a save becomes stale after its bytes were given to the mount, the bytes are in
// .memory/conflicts, with base, theirs and a merge of both, for the loser alone.
func TestLostBytesAreKept(t *testing.T) {
	need(t, "python3", "vim")
	for name, script := range losers {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			a := w.mountWith(fusefs.Config{Principal: "agent-104", Session: "winner", Reason: "the build is red"})
			b := w.mount("agent-205")
			ok(t, a, `printf 'first line\nsecond line\nthird line\nfourth line\nlast line\n' > $M/`+status)
			other := t.TempDir() + "/other"
			must(t, os.WriteFile(other, []byte("#!/bin/sh\nexec sed -i 's/last/LAST/' "+a+"/"+status+"\n"), 0o700))
			env := []string{"F=" + b + "/" + status, "OTHER=" + other, "SCRIPT=" + script, "TMP=" + t.TempDir()}
			ok(t, b, "cat $F", env...)
			if r := sh(t, b, `timeout 20 bash -c "$SCRIPT"`, env...); r.code == 0 || r.code == 124 {
				t.Fatalf("exit %d, must fail; it said %s", r.code, r.out)
			}
			equal(t, ok(t, a, "tail -n 1 $M/"+status), "LAST line\n")
			dir := onlyConflict(t, b)
			two := "two line"
			if strings.Contains(script, "two-xx") {
				two = "two-xx line"
			}
			mine := ok(t, b, "cat "+dir+"/mine")
			if !strings.Contains(mine, "first line\n"+two+"\nthird") || strings.Contains(mine, "LAST") {
				t.Errorf("mine is %q", mine)
			}
			equal(t, ok(t, b, "cat "+dir+"/base"), "first line\nsecond line\nthird line\nfourth line\nlast line\n")
			equal(t, ok(t, b, "cat "+dir+"/theirs"), "first line\nsecond line\nthird line\nfourth line\nLAST line\n")
			equal(t, ok(t, b, "cat "+dir+"/merged"), "first line\n"+two+"\nthird line\nfourth line\nLAST line\n")
			readme := ok(t, b, "cat "+dir+"/README")
			for _, want := range []string{"agent-104", "winner", "the build is red", "no markers", "memoryfs conflicts apply"} {
				if !strings.Contains(readme, want) {
					t.Errorf("README does not say %q:\n%s", want, readme)
				}
			}
			ok(t, b, "grep -q '"+dir[strings.LastIndex(dir, "/")+1:]+"' $M/.memory/errors")
			equal(t, ok(t, a, "ls $M/.memory/conflicts"), "")
			// Without any command: what is merged is right, and having read it, the session may save it.
			ok(t, b, "cp "+dir+"/merged $M/"+status)
			equal(t, ok(t, a, "cat $M/"+status), "first line\n"+two+"\nthird line\nfourth line\nLAST line\n")
		})
	}
}

// TestMergedIsEditedInPlace: both changed one line; merged has markers, an editor fixes it there, and what it saved stays.
func TestMergedIsEditedInPlace(t *testing.T) {
	need(t, "python3", "vim")
	w := newWorld(t)
	a, b := w.mount("agent-104"), w.mount("agent-205")
	other := t.TempDir() + "/other"
	must(t, os.WriteFile(other, []byte("#!/bin/sh\nexec sed -i s/green/red/ "+a+"/"+status+"\n"), 0o700))
	r := sh(t, b, `python3 -c "
import os
F='$M/`+status+`'; s=open(F).read()
os.system('`+other+`')
open(F+'.tmp','w').write(s.replace('green','blue'))
os.replace(F+'.tmp',F)"`)
	if r.code == 0 || !strings.Contains(r.out, "temporarily unavailable") {
		t.Fatalf("exit %d: %s", r.code, r.out)
	}
	dir := onlyConflict(t, b)
	merged := ok(t, b, "cat "+dir+"/merged")
	equal(t, merged, "# Status\n\n<<<<<<< mine\nblue\n=======\nred\n>>>>>>> theirs (version 2)\n")
	ok(t, b, "vim -u NONE -es -c 'g/^[<=>]/d' -c '%s/blue/purple/' -c 'g/red/d' -c wq "+dir+"/merged")
	equal(t, ok(t, b, "cat "+dir+"/merged"), "# Status\n\npurple\n")
	ok(t, b, "echo appended >> "+dir+"/merged")
	equal(t, ok(t, b, "cat "+dir+"/merged"), "# Status\n\npurple\nappended\n")
	fails(t, b, "echo x > "+dir+"/mine", "Read-only file system")
	fails(t, b, "rm "+dir+"/merged", "Read-only file system")
	fails(t, b, "touch "+dir+"/new", "Read-only file system")
	equal(t, ok(t, b, "cat "+dir+"/mine"), "# Status\n\nblue\n")
}

// TestConflictOfARemovedFile: the writer of a file that somebody removes meanwhile is told, and its bytes are kept.
func TestConflictOfARemovedFile(t *testing.T) {
	need(t, "python3")
	w := newWorld(t)
	a, b := w.mount("agent-104"), w.mount("agent-205")
	const incident = "projects/billing-redesign/incidents/2026-02-02.md"
	ok(t, a, "echo text > $M/"+incident)
	r := sh(t, b, `python3 -c "
import os
f=open('$M/`+incident+`','a+'); f.write('more\n')
os.system('rm `+a+`/`+incident+`')
f.close()"`)
	if r.code == 0 {
		t.Fatalf("the close of a removed file succeeds: %s", r.out)
	}
	dir := onlyConflict(t, b)
	equal(t, ok(t, b, "ls "+dir), "README\nbase\nmine\n")
	equal(t, ok(t, b, "cat "+dir+"/mine"), "more\n")
	if readme := ok(t, b, "cat "+dir+"/README"); !strings.Contains(readme, "removed") {
		t.Errorf("README: %s", readme)
	}
}

// TestConflictsAreBounded: a principal that loses all the time keeps its last hundred.
func TestConflictsAreBounded(t *testing.T) {
	need(t, "python3")
	w := newWorld(t)
	b := w.mount("agent-205")
	max := w.mem.Settings().Conflicts.Max
	v, c := w.view("agent-205")
	for range max + 5 {
		_, _, err := v.ReadFile(ctx(t), c, status)
		must(t, err)
		w.storePut("agent-104", status, w.storeCat("agent-104", status)+"more\n")
		if _, err := v.Put(ctx(t), c, status, backend.PutOptions{}, []byte("mine\n")); err == nil {
			t.Fatal("a stale put succeeds")
		}
	}
	equal(t, strings.Count(ok(t, b, "ls $M/.memory/conflicts"), "\n"), max)
}

// TestConflictShowsWhatMayBeReadToday: when its loser may not read the memory any more, only mine is left.
func TestConflictShowsWhatMayBeReadToday(t *testing.T) {
	w := newWorld(t)
	b := w.mount("agent-205")
	v, c := w.view("agent-205")
	_, _, err := v.ReadFile(ctx(t), c, status)
	must(t, err)
	w.storePut("agent-104", status, "theirs\n")
	if _, err := v.Put(ctx(t), c, status, backend.PutOptions{}, []byte("mine\n")); err == nil {
		t.Fatal("a stale put succeeds")
	}
	dir := onlyConflict(t, b)
	equal(t, ok(t, b, "ls "+dir+"; cat "+dir+"/theirs"), "README\nbase\nmerged\nmine\ntheirs\ntheirs\n")
	rule := "package memory.authz\n\nverdicts contains \"deny/gone\" if {\n\tinput.caller.id == \"agent-205\"\n\tinput.scope == \"projects\"\n}\n"
	must(t, os.WriteFile(filepath.Join(w.dir, backend.PolicyDir, "extra.rego"), []byte(rule), 0o600))
	must(t, w.mem.Policy().Reload(ctx(t)))
	equal(t, ok(t, b, "ls "+dir+"; cat "+dir+"/mine"), "README\nmine\nmine\n")
	fails(t, b, "cat "+dir+"/theirs", "No such file")
	fails(t, b, "cat "+dir+"/merged", "No such file")
	if readme := ok(t, b, "cat "+dir+"/README"); !strings.Contains(readme, "may not read") || strings.Contains(readme, "agent-104") {
		t.Errorf("README: %s", readme)
	}
}
