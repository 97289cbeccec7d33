package policy

import (
	"testing"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"":                   "",
		"teams/a.md":         "teams/a.md",
		"größe/日本":           "größe/日本",
		`a\b`:                `a\\b`,
		"a\xffb":             `a\xffb`,
		`a\xffb`:             `a\\xffb`,
		"\xef\xbf\xbd":       "\uFFFD", // the replacement character itself is UTF-8
		"\xe2\x82":           `\xe2\x82`,
		"\xed\xa0\x80":       `\xed\xa0\x80`, // a surrogate half
		"new\nline":          "new\nline",
		"e\u0301 and \u00e9": "e\u0301 and \u00e9", // not normalised: two names
	} {
		if got := Escape(in); got != want {
			t.Errorf("Escape(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzEscapeIsInjective(f *testing.F) {
	f.Add("a\xff", `a\xff`)
	f.Add(`\\`, `\`)
	f.Add("\xef\xbf\xbd", "\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := Escape(a), Escape(b)
		if (x == y) != (a == b) {
			t.Fatalf("%q and %q became %q and %q", a, b, x, y)
		}
		if !utf8.ValidString(x) {
			t.Fatalf("%q", x)
		}
	})
}
