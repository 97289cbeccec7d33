package scenario_test

import (
	"strings"
	"testing"
)

// TestEditorsMakeOneVersion of the same memory, with its history unbroken.
func TestEditorsMakeOneVersion(t *testing.T) {
	for name, save := range map[string]string{
		"vim auto":           `vim -u NONE -es -c 's/old/new/' -c wq $F`,
		"vim backupcopy=no":  `vim -u NONE -es -c 'set backup backupcopy=no' -c 's/old/new/' -c wq $F`,
		"vim backupcopy=yes": `vim -u NONE -es -c 'set backup backupcopy=yes' -c 's/old/new/' -c wq $F`,
		"vim writebackup no": `vim -u NONE -es -c 'set writebackup backupcopy=no' -c 's/old/new/' -c wq $F`,
		"emacs":              `emacs -Q --batch --eval '(progn (find-file "'$F'") (while (search-forward "old" nil t) (replace-match "new")) (save-buffer))'`,
		"sed -i":             `sed -i s/old/new/ $F`,
		"sed -i.bak~":        `sed -i~ s/old/new/ $F`,
		"perl -i":            `perl -i -pe s/old/new/ $F`,
		"mv tmp":             `sed s/old/new/ $F > $F.tmp && mv $F.tmp $F`,
		"os.replace":         `python3 -c "import os;F=os.environ['F'];s=open(F).read();f=open(F+'.tmp','w');f.write(s.replace('old','new'));f.close();os.replace(F+'.tmp',F)"`,
		"rsync":              `echo new > $TMP/status.md; rsync -I --no-t $TMP/status.md $F`,
		"rsync --inplace":    `echo new > $TMP/status.md; rsync -I --inplace --no-t $TMP/status.md $F`,
		"cp":                 `cat $F >/dev/null; echo new > $TMP/n; cp $TMP/n $F`,
		"ex append":          `cat $F >/dev/null; echo new > $F`,
	} {
		t.Run(name, func(t *testing.T) {
			need(t, strings.Fields(save)[0])
			w := newWorld(t)
			m := w.mount("agent-104")
			w.storePut("agent-104", status, "old\n")
			env := []string{"F=" + m + "/" + status, "TMP=" + t.TempDir()}
			before := w.versions("agent-104", status)
			ok(t, m, save, env...)
			after := w.versions("agent-104", status)
			equal(t, w.storeCat("agent-104", status), "new\n")
			equal(t, len(after), len(before)+1)
			equal(t, after[0].Memory, before[0].Memory)
			w.storePut("agent-104", status, "old\n")
			ok(t, m, save, env...) // a second save, after somebody else's change, is not stale either: it read again
			equal(t, w.storeCat("agent-104", status), "new\n")
		})
	}
}

// TestBackupRenameOfADyingEditor: the memory is still there at its old version.
func TestBackupRenameOfADyingEditor(t *testing.T) {
	w := newWorld(t)
	m := w.mount("agent-104")
	ok(t, m, "bash -c 'cat $M/"+status+" >/dev/null; mv $M/"+status+" $M/"+status+"~'")
	equal(t, ok(t, m, "cat $M/"+status), "# Status\n\ngreen\n")
	equal(t, len(w.versions("agent-104", status)), 1)
	// It dies after it made the new file and before it wrote.
	ok(t, m, `python3 -c "
import os
F=os.environ['M']+'/`+status+`'
os.rename(F, F+'~')
assert not os.path.exists(F)
f=os.open(F, os.O_CREAT|os.O_WRONLY|os.O_EXCL)
os._exit(1)" || true`)
	equal(t, ok(t, m, "cat $M/"+status), "# Status\n\ngreen\n")
	equal(t, len(w.versions("agent-104", status)), 1)
}

// TestEphemeralNames are private to their principal, make no versions, and survive a restart.
func TestEphemeralNames(t *testing.T) {
	w := newWorld(t)
	a, b := w.mount("agent-104"), w.mount("agent-205")
	d := "projects/billing-redesign/"
	ok(t, a, "echo swap > $M/"+d+".decisions.md.swp; echo more >> $M/"+d+".decisions.md.swp")
	equal(t, ok(t, a, "cat $M/"+d+".decisions.md.swp"), "swap\nmore\n")
	fails(t, b, "cat $M/"+d+".decisions.md.swp", "No such file")
	if out := ok(t, b, "ls -A $M/"+d); strings.Contains(out, "swp") {
		t.Fatal(out)
	}
	for _, r := range w.records() {
		if strings.Contains(r.Path, "swp") {
			t.Fatalf("it is audited: %+v", r)
		}
	}
	fails(t, a, "mv $M/"+d+".decisions.md.swp $M/"+d+"decisions.md", "Permission denied")
}
