package policy

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Escape makes a path, or a segment of it, a string for Rego: UTF-8 stays, a backslash is doubled, a byte that is no
// UTF-8 becomes \xNN. Two different paths never become the same string.
func Escape(path string) string {
	if utf8.ValidString(path) && !strings.Contains(path, `\`) {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); {
		r, n := utf8.DecodeRuneInString(path[i:])
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, path[i])
		default:
			b.WriteString(path[i : i+n])
		}
		i += n
	}
	return b.String()
}
