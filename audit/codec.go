package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Marshal renders a record as one line of JSON, without its newline.
func Marshal(r Record) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// Unmarshal reads one line strictly: unknown keys and trailing bytes are ErrRecord.
func Unmarshal(line []byte) (Record, error) {
	var r Record
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return r, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return r, fmt.Errorf("%w: more than one value", ErrRecord)
	}
	return r, nil
}

// Commitment binds a record to a content without telling it: hex HMAC-SHA256 of the content's hash under the version's
// salt, which lies beside the version. Erase the version, and the record says nothing any more.
func Commitment(salt [16]byte, sum [32]byte) string {
	m := hmac.New(sha256.New, salt[:])
	m.Write(sum[:])
	return hex.EncodeToString(m.Sum(nil))
}

// Quote makes any bytes of a path a string that is unambiguous in JSON: printable UTF-8 stays, a backslash is doubled,
// every other byte becomes \xNN.
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

// Unquote undoes Quote. ErrRecord for what Quote does not make.
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
			if err != nil {
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
