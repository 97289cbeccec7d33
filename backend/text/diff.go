// Package text compares and merges texts line by line: what conflicts, diff, blame and revert stand on. It knows nothing
// of memories.
package text

import (
	"bytes"
	"slices"
	"strings"

	udiff "github.com/aymanbagabas/go-udiff"
	"github.com/aymanbagabas/go-udiff/lcs"
)

// Edit replaces lines [From, To) of an old text by lines [NewFrom, NewTo) of a new one. Either range may be empty.
type Edit struct{ From, To, NewFrom, NewTo int }

// Lines splits a text into lines that keep their newline; the last may have none.
func Lines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Binary tells whether a content is no text: it has a NUL byte, as diff(1) and git have it.
func Binary(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 }

// Diff lists the edits that turn a into b, in order, not touching each other. Lines that occur once in both texts are
// matched first (patience diff), and the library compares what lies between them: it stops looking for the least
// difference after a hundred edits, which in one go would make one big edit of a text that is changed in many places.
func Diff(a, b []string) []Edit {
	var out []Edit
	var i, j int
	for _, m := range append(anchors(a, b), match{len(a), len(b)}) {
		for _, d := range lcs.DiffLines(a[i:m.a], b[j:m.b]) {
			out = join(out, Edit{i + d.Start, i + d.End, j + d.ReplStart, j + d.ReplEnd})
		}
		i, j = m.a, m.b
	}
	return out
}

// join appends an edit, as part of the last one if they touch.
func join(list []Edit, e Edit) []Edit {
	if n := len(list); n > 0 && list[n-1].To == e.From && list[n-1].NewTo == e.NewFrom {
		list[n-1].To, list[n-1].NewTo = e.To, e.NewTo
		return list
	}
	return append(list, e)
}

// match is a line of a that is the same as a line of b.
type match struct{ a, b int }

// anchors are the lines that occur once in both texts and are in the same order in both: a longest such sequence.
func anchors(a, b []string) []match {
	type seen struct{ a, b, inA, inB int }
	index := map[string]*seen{}
	for i, line := range a {
		s := index[line]
		if s == nil {
			s = &seen{}
			index[line] = s
		}
		s.a, s.inA = i, s.inA+1
	}
	for j, line := range b {
		if s := index[line]; s != nil {
			s.b, s.inB = j, s.inB+1
		}
	}
	var unique []match // by a
	for i, line := range a {
		if s := index[line]; s.inA == 1 && s.inB == 1 {
			unique = append(unique, match{i, s.b})
		}
	}
	return longestRising(unique)
}

// longestRising is the longest subsequence with rising b: patience sorting.
func longestRising(list []match) []match {
	var piles []int // index of each pile's top, whose b is the least that ends a sequence of that length
	before := make([]int, len(list))
	for i, m := range list {
		at, _ := slices.BinarySearchFunc(piles, m.b, func(top, b int) int { return list[top].b - b })
		before[i] = -1
		if at > 0 {
			before[i] = piles[at-1]
		}
		if at == len(piles) {
			piles = append(piles, i)
		} else {
			piles[at] = i
		}
	}
	if len(piles) == 0 {
		return nil
	}
	out := make([]match, len(piles))
	for k, i := len(piles)-1, piles[len(piles)-1]; k >= 0; k, i = k-1, before[i] {
		out[k] = list[i]
	}
	return out
}

// Unified is the difference in the format of diff -u, "" if there is none.
func Unified(oldName, newName, before, after string) string {
	if before == after {
		return ""
	}
	a, b := Lines(before), Lines(after)
	offset := make([]int, len(a)+1)
	for i, line := range a {
		offset[i+1] = offset[i] + len(line)
	}
	var edits []udiff.Edit
	for _, e := range Diff(a, b) {
		edits = append(edits, udiff.Edit{Start: offset[e.From], End: offset[e.To], New: strings.Join(b[e.NewFrom:e.NewTo], "")})
	}
	out, err := udiff.ToUnified(oldName, newName, before, edits, udiff.DefaultContextLines)
	if err != nil { // the edits are in order and within the text, by Diff's promise
		panic("unified diff: " + err.Error())
	}
	return out
}
