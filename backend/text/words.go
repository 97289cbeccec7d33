package text

import (
	"strings"
	"unicode"
)

// Words is the new text with what was removed as [-…-] and what was added as {+…+}, word by word, as git diff --word-diff
// has it; only the lines with a change. "" if there is none.
func Words(before, after string) string {
	if before == after {
		return ""
	}
	a, b := words(before), words(after)
	var out strings.Builder
	at := 0
	for _, e := range Diff(a, b) {
		write(&out, b[at:e.NewFrom])
		mark(&out, "[-", a[e.From:e.To], "-]")
		mark(&out, "{+", b[e.NewFrom:e.NewTo], "+}")
		at = e.NewTo
	}
	write(&out, b[at:])
	var changed strings.Builder
	for _, line := range Lines(out.String()) {
		if strings.Contains(line, "[-") && strings.Contains(line, "-]") || strings.Contains(line, "{+") && strings.Contains(line, "+}") {
			changed.WriteString(line)
		}
	}
	return changed.String()
}

// mark writes words between marks, line by line, and leaves newlines outside of them.
func mark(out *strings.Builder, open string, list []string, shut string) {
	for _, line := range Lines(strings.Join(list, "")) {
		body := strings.TrimSuffix(line, "\n")
		if body != "" {
			out.WriteString(open + body + shut)
		}
		if body != line && (open == "{+" || body != "") {
			out.WriteByte('\n')
		}
	}
}

// words splits a text into words, runs of blanks, and newlines.
func words(s string) []string {
	var out []string
	kind := func(r rune) int {
		switch {
		case r == '\n':
			return 0
		case unicode.IsSpace(r):
			return 1
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
			return 2
		}
		return 3
	}
	from, last := 0, -1
	for i, r := range s {
		k := kind(r)
		if last >= 0 && (k != last || k == 0 || k == 3) {
			out = append(out, s[from:i])
			from = i
		}
		last = k
	}
	if from < len(s) {
		out = append(out, s[from:])
	}
	return out
}
