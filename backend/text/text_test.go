package text

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// someText draws texts of few different lines, so that they repeat, with and without a last newline.
func someText(t *rapid.T, name string) string {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "d\n", "\n", "<<<<<<< x\n"}), 0, 30).Draw(t, name)
	return strings.Join(append(lines, rapid.SampledFrom([]string{"", "end"}).Draw(t, name+" tail")), "")
}

// mutate changes a text here and there, as a writer would.
func mutate(t *rapid.T, s, name string) string {
	lines := Lines(s)
	for range rapid.IntRange(0, 4).Draw(t, name+" edits") {
		at := rapid.IntRange(0, len(lines)).Draw(t, name+" at")
		n := rapid.IntRange(0, min(3, len(lines)-at)).Draw(t, name+" cut")
		add := Lines(someText(t, name+" new"))
		lines = slices.Concat(lines[:at], add[:min(2, len(add))], lines[at+n:])
	}
	return strings.Join(lines, "")
}

func TestDiffTurnsOneTextIntoTheOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := someText(t, "before")
		a, b := Lines(before), Lines(mutate(t, before, "after"))
		var got []string
		at, last := 0, -1
		for _, e := range Diff(a, b) {
			if e.From <= last || e.From > e.To || e.NewFrom > e.NewTo || e.From == e.To && e.NewFrom == e.NewTo {
				t.Fatalf("edit %+v does not follow %d", e, last)
			}
			got = append(append(got, a[at:e.From]...), b[e.NewFrom:e.NewTo]...)
			at, last = e.To, e.To
		}
		if got = append(got, a[at:]...); !slices.Equal(got, b) {
			t.Fatalf("%q to %q gave %q", a, b, got)
		}
	})
}

// TestDiffOfAManyTimesChangedText: the library alone gives up after a hundred edits and calls everything changed.
func TestDiffOfAManyTimesChangedText(t *testing.T) {
	var a, b []string
	for i := range 2000 {
		line := strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26) + "\n"
		a = append(a, line)
		if i%5 == 0 {
			line = "changed " + line
		}
		b = append(b, line)
	}
	if n := len(Diff(a, b)); n != 400 {
		t.Fatalf("%d edits, want one for each of the 400 changed lines", n)
	}
}

func TestMergeKeepsBothSides(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := someText(t, "base")
		mine, theirs := mutate(t, base, "mine"), mutate(t, base, "theirs")
		l := Labels{"mine", "theirs"}
		got, n := Merge(base, mine, theirs, l)
		if n == 0 != !HasMarkers(got, l) {
			t.Fatalf("%d conflicts, markers %t:\n%s", n, HasMarkers(got, l), got)
		}
		if one, n := Merge(base, mine, base, l); one != mine || n != 0 {
			t.Fatalf("only mine changed: %q", one)
		}
		if one, n := Merge(base, base, theirs, l); one != theirs || n != 0 {
			t.Fatalf("only theirs changed: %q", one)
		}
		if one, n := Merge(base, mine, mine, l); one != mine || n != 0 {
			t.Fatalf("both changed the same: %q", one)
		}
		if _, back := Merge(base, theirs, mine, l); back != n {
			t.Fatalf("%d conflicts one way, %d the other", n, back)
		}
		for _, line := range slices.Concat(added(base, mine), added(base, theirs)) {
			if !strings.Contains(got, line) {
				t.Fatalf("the added line %q is lost in %q", line, got)
			}
		}
	})
}

// added are the lines of a text that the base does not have at all.
func added(base, s string) (out []string) {
	for _, line := range Lines(s) {
		if !slices.Contains(Lines(base), line) {
			out = append(out, line)
		}
	}
	return out
}

// TestMergeAgreesWithGit compares with git merge-file where that finds no conflict, on texts of distinct lines (with
// repeated ones two diffs may rightly differ).
func TestMergeAgreesWithGit(t *testing.T) {
	for name, c := range map[string]struct {
		mine, theirs string
		conflicts    int
	}{
		"apart":             {"1\n2\nM\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\nT\n7\n", 0},
		"same line":         {"1\n2\nM\n4\n5\n6\n7\n", "1\n2\nT\n4\n5\n6\n7\n", 1},
		"touching":          {"1\n2\nM\n4\n5\n6\n7\n", "1\n2\n3\nT\n5\n6\n7\n", 1},
		"both append":       {"1\n2\n3\n4\n5\n6\n7\nM\n", "1\n2\n3\n4\n5\n6\n7\nT\n", 1},
		"insert and delete": {"0\n1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\n4\n5\n6\n", 0},
		"emptied":           {"", "1\n2\n3\n4\n5\n6\nT\n", 1},
		"no last newline":   {"1\n2\n3\n4\n5\n6\nM", "1\n2\n3\n4\n5\n6\nT", 1},
		"two places":        {"M\n2\n3\n4\n5\n6\nM\n", "T\n2\n3\n4\n5\n6\nT\n", 2},
		"delete and change": {"1\n2\n4\n5\n6\n7\n", "1\n2\nT\n4\n5\n6\n7\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			base := "1\n2\n3\n4\n5\n6\n7\n"
			got, n := Merge(base, c.mine, c.theirs, Labels{"mine", "theirs"})
			if n != c.conflicts {
				t.Errorf("%d conflicts, want %d:\n%s", n, c.conflicts, got)
			}
			dir := t.TempDir()
			var files []string
			for _, f := range [][2]string{{"mine", c.mine}, {"base", base}, {"theirs", c.theirs}} {
				files = append(files, filepath.Join(dir, f[0]))
				if err := os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("git", append([]string{"merge-file", "-p", "-L", "mine", "-L", "base", "-L", "theirs"}, files...)...)
			want, _ := cmd.Output() // its exit status is the number of conflicts
			if got != string(want) {
				t.Errorf("got:\n%s\ngit:\n%s", got, want)
			}
		})
	}
}

func TestUnifiedIsWhatGitApplyTakes(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	rapid.Check(t, func(t *rapid.T) {
		before := someText(t, "before")
		after := mutate(t, before, "after")
		u := Unified("a/f", "b/f", before, after)
		if (u == "") != (before == after) {
			t.Fatalf("%q to %q: %q", before, after, u)
		}
		if u == "" || before == "" || after == "" { // git wants more headers for a file that comes or goes
			return
		}
		if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("git", "apply", "--whitespace=nowarn", "-")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(u)
		out, err := cmd.CombinedOutput()
		got, _ := os.ReadFile(file)
		if err != nil || string(got) != after {
			t.Fatalf("git apply: %v %s\n%s\ngave %q, want %q", err, out, u, got, after)
		}
	})
}
