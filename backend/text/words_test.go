package text

import "testing"

func TestWords(t *testing.T) {
	for _, x := range []struct{ before, after, want string }{
		{"same\n", "same\n", ""},
		{"one two three\nrest\n", "one 2 three\nrest\n", "one [-two-]{+2+} three\n"},
		{"a\n", "a\nb c\n", "{+b c+}\n"},
		{"a\nb\n", "a\n", "[-b-]\n"},
		{"limit: 80 %\n", "limit: 85 %\n", "limit: [-80-]{+85+} %\n"},
		{"grün\n", "blau", "[-grün-]\n{+blau+}"},
	} {
		if got := Words(x.before, x.after); got != x.want {
			t.Errorf("%q to %q: got %q, want %q", x.before, x.after, got, x.want)
		}
	}
}
