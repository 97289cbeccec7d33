package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxLine bounds a line with its newline, in bytes; Marshal makes none that is longer.
const maxLine = 1 << 20

// unnumbered is how a marshalled record without a sequence begins; number relies on it.
const unnumbered = `{"seq":0`

// Marshal renders a record as one line of JSON, without its newline: keys in the order of Record, nothing escaped that
// need not be. Bytes that are no UTF-8 become U+FFFD; Quote paths first. ErrRecord for a time outside of the years 0 to
// 9999 and for more than 1 MiB.
func Marshal(r Record) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if b.Len() > maxLine-32 { // room for the digits of sequence and revision
		return nil, fmt.Errorf("%w: %d bytes are too many", ErrRecord, b.Len())
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// number appends a line that was marshalled with sequence 0, with its sequence and its newline.
func number(buf []byte, seq uint64, line []byte) []byte {
	buf = append(buf, unnumbered[:len(unnumbered)-1]...)
	buf = strconv.AppendUint(buf, seq, 10)
	buf = append(buf, line[len(unnumbered):]...)
	return append(buf, '\n')
}

// Unmarshal reads one line strictly: ErrRecord for unknown keys, keys in other case, a key twice, what is no UTF-8, and
// trailing bytes. So two readers cannot read two things in it.
func Unmarshal(line []byte) (Record, error) {
	var r Record
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrRecord, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Record{}, fmt.Errorf("%w: more than one value", ErrRecord)
	}
	if len(line) == 0 || line[0] != '{' || !utf8.Valid(line) {
		return Record{}, fmt.Errorf("%w: no object in UTF-8", ErrRecord)
	}
	if err := checkKeys(line); err != nil {
		return Record{}, err
	}
	return r, nil
}

// checkKeys finds what encoding/json lets pass in valid JSON: keys in other case, and keys given twice.
func checkKeys(line []byte) error {
	const deepest = 2 // the record, and what was replaced or the rules in it
	var seen [deepest + 1][][]byte
	var object [deepest + 1]bool
	depth, key := 0, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case '{', '[':
			if depth++; depth > deepest {
				return fmt.Errorf("%w: nested", ErrRecord)
			}
			object[depth], key, seen[depth] = c == '{', c == '{', seen[depth][:0]
		case '}', ']':
			depth--
			key = false
		case ',':
			key = object[depth]
		case '"':
			end := stringEnd(line, i)
			if key {
				name := line[i+1 : end]
				if !fresh(seen[depth], name) {
					return fmt.Errorf("%w: key %q", ErrRecord, name)
				}
				seen[depth], key = append(seen[depth], name), false
			}
			i = end
		}
	}
	return nil
}

// fresh tells whether name is a plain key that is not among seen.
func fresh(seen [][]byte, name []byte) bool {
	for _, c := range name {
		if (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	for _, s := range seen {
		if bytes.Equal(s, name) {
			return false
		}
	}
	return true
}

// stringEnd is the index of the quote that ends the string beginning at i.
func stringEnd(line []byte, i int) int {
	for i++; i < len(line) && line[i] != '"'; i++ {
		if line[i] == '\\' {
			i++
		}
	}
	return min(i, len(line)-1)
}
