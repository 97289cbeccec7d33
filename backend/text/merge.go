package text

import (
	"slices"
	"strings"
)

// Labels name the two sides in conflict markers.
type Labels struct{ Mine, Theirs string }

// What a conflict marker's line begins with, as git, diff3(1) and editors have it.
const (
	markMine   = "<<<<<<< "
	markMiddle = "======="
	markTheirs = ">>>>>>> "
)

// Merge brings two changes of one base together (diff3). Where both changed the same lines, or lines that touch, both
// stand between conflict markers; conflicts counts those places. Changes that are the same on both sides are taken once.
func Merge(base, mine, theirs string, l Labels) (merged string, conflicts int) {
	old := Lines(base)
	a, b := newSide(old, mine), newSide(old, theirs)
	var out strings.Builder
	at := 0
	for len(a.edits)+len(b.edits) > 0 {
		from := min(a.next(len(old)), b.next(len(old)))
		write(&out, old[at:from])
		to := grow(a, b, from)
		mine, theirs := a.take(from, to), b.take(from, to)
		switch {
		case !b.changed, slices.Equal(mine, theirs):
			write(&out, mine)
		case !a.changed:
			write(&out, theirs)
		default:
			conflicts++
			writeLine(&out, markMine+l.Mine)
			write(&out, mine)
			writeLine(&out, markMiddle)
			write(&out, theirs)
			writeLine(&out, markTheirs+l.Theirs)
		}
		at = to
	}
	write(&out, old[at:])
	return out.String(), conflicts
}

// HasMarkers tells whether a text still holds a place that Merge marked with these labels.
func HasMarkers(s string, l Labels) bool {
	for _, line := range Lines(s) {
		switch strings.TrimRight(line, "\r\n") {
		case markMine + l.Mine, markTheirs + l.Theirs:
			return true
		}
	}
	return false
}

// side is one of the two changed texts, with the edits that are still to come.
type side struct {
	lines   []string
	edits   []Edit
	ahead   int // lines that the edits so far made it longer than the base
	begin   int // how far it was ahead at the beginning of the region
	changed bool
}

func newSide(base []string, s string) *side {
	lines := Lines(s)
	return &side{lines: lines, edits: Diff(base, lines)}
}

func (s *side) next(end int) int {
	if len(s.edits) == 0 {
		return end
	}
	return s.edits[0].From
}

// grow finds the end of the region of the base that begins with an edit at from: every edit that overlaps or touches
// what is in it so far belongs to it.
func grow(a, b *side, from int) (to int) {
	to = from
	for _, s := range []*side{a, b} {
		s.begin, s.changed = s.ahead, false
	}
	for more := true; more; {
		more = false
		for _, s := range []*side{a, b} {
			for len(s.edits) > 0 && s.edits[0].From <= to {
				e := s.edits[0]
				s.edits = s.edits[1:]
				s.ahead += (e.NewTo - e.NewFrom) - (e.To - e.From)
				to = max(to, e.To)
				s.changed, more = true, true
			}
		}
	}
	return to
}

// take is what the side made of the region.
func (s *side) take(from, to int) []string { return s.lines[from+s.begin : to+s.ahead] }

func write(out *strings.Builder, lines []string) {
	for _, line := range lines {
		out.WriteString(line)
	}
}

// writeLine writes a marker on a line of its own, also after a text that does not end with a newline.
func writeLine(out *strings.Builder, line string) {
	if s := out.String(); s != "" && s[len(s)-1] != '\n' {
		out.WriteByte('\n')
	}
	out.WriteString(line + "\n")
}
