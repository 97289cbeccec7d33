package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Filter chooses records; a zero field chooses all.
type Filter struct {
	Principal string
	Path      string // quoted: this path and what is below it, as path or as from
	Kind      string
	Session   string
	Since     time.Time // not before
}

// Match tells whether r is chosen.
func (f Filter) Match(r Record) bool {
	return (f.Principal == "" || f.Principal == r.Principal) && (f.Kind == "" || f.Kind == r.Kind) &&
		(f.Session == "" || f.Session == r.Session) && !r.Time.Before(f.Since) &&
		(below(r.Path, f.Path) || r.From != "" && below(r.From, f.Path))
}

// below tells whether path is p or lies under it; "" is above everything.
func below(path, p string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(p, "/"))
	return ok && (p == "" || rest == "" || rest[0] == '/')
}

// Line is a record, and its bytes in the log.
type Line struct {
	Raw    []byte
	Record Record
}

// Last returns the last n chosen records, in order, reading the log from its end; and the sequence to Follow from.
func Last(ctx context.Context, dir string, n int, f Filter) (lines []Line, next uint64, err error) {
	segs, err := segments(dir)
	if err != nil {
		return nil, 0, err
	}
	var before uint64 // the sequence of the line after
	for i := len(segs) - 1; i >= 0 && (len(lines) < n || next == 0); i-- {
		err := backward(filepath.Join(dir, segmentName(segs[i])), func(line []byte, ended bool) (bool, error) {
			if !ended && before == 0 {
				return true, ctx.Err() // it is being written
			}
			r, err := Unmarshal(line)
			if err == nil && before > 0 && r.Seq+1 != before {
				err = fmt.Errorf("record %d is before record %d", r.Seq, before)
			}
			if err != nil {
				return false, &Damage{Seq: max(before, 1) - 1, Segment: segmentName(segs[i]), Why: "cannot be read: " + err.Error(), last: i+1 == len(segs)}
			}
			if before = r.Seq; next == 0 {
				next = r.Seq + 1
			}
			if len(lines) < n && f.Match(r) {
				lines = append(lines, Line{bytes.Clone(line), r})
			}
			return len(lines) < n, ctx.Err()
		})
		if err != nil {
			return nil, 0, err
		}
	}
	slices.Reverse(lines)
	return lines, max(next, 1), nil
}

// Follow calls fn for every chosen record from sequence from on, and for those to come, until ctx ends or fn fails. The
// log may be written by another process, or not be there yet.
func Follow(ctx context.Context, dir string, from uint64, f Filter, fn func(Line) error) error {
	const every = 200 * time.Millisecond
	next := max(from, 1)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		err := Scan(ctx, dir, next, func(line []byte, r Record) error {
			next = r.Seq + 1
			if !f.Match(r) {
				return nil
			}
			return fn(Line{bytes.Clone(line), r})
		})
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-t.C:
		}
	}
}

func backward(name string, fn func(line []byte, ended bool) (bool, error)) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	return linesBack(f, st.Size(), fn)
}

// linesBack calls fn for the lines of the first size bytes of f, the last first, until it returns false. ended: the line
// has its newline, which only the last may lack. line is valid only in fn.
func linesBack(f io.ReaderAt, size int64, fn func(line []byte, ended bool) (bool, error)) error {
	const block = 64 << 10
	var rest []byte // begins at offset, belongs to lines not given yet
	ended := false
	for offset := size; offset > 0 || len(rest) > 0 || ended; {
		i := bytes.LastIndexByte(rest, '\n')
		if i < 0 && offset > 0 {
			if len(rest) > maxLine {
				return errors.New("a line is longer than any record")
			}
			n := min(block, offset)
			buf := make([]byte, n, n+int64(len(rest)))
			if _, err := f.ReadAt(buf, offset-n); err != nil {
				return err
			}
			offset, rest = offset-n, append(buf, rest...)
			continue
		}
		if line := rest[i+1:]; ended || len(line) > 0 {
			if goOn, err := fn(line, ended); err != nil || !goOn {
				return err
			}
		}
		if i < 0 {
			return nil
		}
		rest, ended = rest[:i], true
	}
	return nil
}
