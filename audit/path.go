package audit

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote makes any bytes of a path a string that is unambiguous in JSON, and harmless on a terminal: printable UTF-8
// stays, a backslash is doubled, every byte of anything else (no UTF-8, control characters, direction marks) becomes
// \xNN in lower case. Different paths never have the same Quote. Which characters are printable grows with Unicode, so
// compare paths after Unquote when they were quoted by different releases.
func Quote(path string) string {
	plain := true
	for _, r := range path {
		if r == '\\' || r == utf8.RuneError || !unicode.IsPrint(r) {
			plain = false
			break
		}
	}
	if plain {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); {
		r, n := utf8.DecodeRuneInString(path[i:])
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == utf8.RuneError && n == 1, !unicode.IsPrint(r):
			for _, c := range []byte(path[i : i+n]) {
				fmt.Fprintf(&b, `\x%02x`, c)
			}
		default:
			b.WriteString(path[i : i+n])
		}
		i += n
	}
	return b.String()
}

// Unquote undoes Quote. ErrRecord for an escape that Quote does not make: another letter, capitals, or the escape of a
// printable ASCII character.
func Unquote(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		switch {
		case i+1 < len(s) && s[i+1] == '\\':
			b.WriteByte('\\')
			i++
		case i+3 < len(s) && s[i+1] == 'x':
			c, err := hex.DecodeString(s[i+2 : i+4])
			if err != nil || strings.ContainsAny(s[i+2:i+4], "ABCDEF") || c[0] >= ' ' && c[0] <= '~' {
				return "", fmt.Errorf("%w: escape in %q", ErrRecord, s)
			}
			b.WriteByte(c[0])
			i += 3
		default:
			return "", fmt.Errorf("%w: escape in %q", ErrRecord, s)
		}
	}
	return b.String(), nil
}
