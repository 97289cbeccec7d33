package audit

import (
	"bytes"
	"io"
	"os"
	"strconv"
)

// seek finds a line at or shortly before the sequence from, by halving: lines ascend, and each begins with its sequence.
// What cannot be read that way is left to the walk, which begins earlier then. It returns the line's offset and sequence.
func seek(f *os.File, first, from uint64) (offset int64, seq uint64) {
	const near = 64 << 10 // not worth halving
	st, err := f.Stat()
	if err != nil {
		return 0, first
	}
	seq = first
	for end := st.Size(); end-offset > near; {
		mid := offset + (end-offset)/2
		at, n, ok := lineAfter(f, mid, end)
		switch {
		case !ok:
			end = mid
		case n < seq:
			return 0, first
		case n <= from:
			offset, seq = at, n
		default:
			end = mid
		}
	}
	return offset, seq
}

// lineAfter is the first line that begins after pos and before end, and its sequence.
func lineAfter(f *os.File, pos, end int64) (at int64, seq uint64, ok bool) {
	buf := make([]byte, 4<<10)
	for pos < end {
		n, err := f.ReadAt(buf, pos)
		if n == 0 || err != nil && err != io.EOF {
			return 0, 0, false
		}
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			at = pos + int64(i) + 1
			seq, ok = sequenceAt(f, at)
			return at, seq, ok && at < end
		}
		pos += int64(n)
	}
	return 0, 0, false
}

func sequenceAt(f *os.File, at int64) (uint64, bool) {
	var buf [32]byte
	n, _ := f.ReadAt(buf[:], at)
	rest, ok := bytes.CutPrefix(buf[:n], []byte(unnumbered[:len(unnumbered)-1]))
	i := bytes.IndexByte(rest, ',')
	if !ok || i < 0 {
		return 0, false
	}
	seq, err := strconv.ParseUint(string(rest[:i]), 10, 64)
	return seq, err == nil
}
