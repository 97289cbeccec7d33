package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Scan calls fn for every whole line from sequence from on, in order. *Damage names the first line there that cannot be
// read or leaves a gap; what lies before from is not looked at. A partial last line is not read: the log may be being
// written, by this process or another. line is valid only in fn; an error of fn ends the scan and is returned as it is.
func Scan(ctx context.Context, dir string, from uint64, fn func(line []byte, r Record) error) error {
	w := walk{dir: dir, from: from, line: fn, bad: func(d *Damage) error { return d }}
	return w.run(ctx)
}

// walk reads the log from a sequence on.
type walk struct {
	dir  string
	from uint64
	line func(line []byte, r Record) error
	bad  func(*Damage) error // nil goes on behind the damage

	next    uint64 // the sequence to come
	in      *bufio.Reader
	segment string
	last    bool  // segment is the last
	offset  int64 // of the line to come
}

func (w *walk) run(ctx context.Context) error {
	segs, err := segments(w.dir)
	if err != nil {
		return err
	}
	w.in, w.next = bufio.NewReaderSize(nil, maxLine), 1
	for i, first := range segs {
		if i+1 < len(segs) && segs[i+1] <= w.from && (i > 0 || first == 1) {
			w.next = segs[i+1] // all of it is before
			continue
		}
		w.segment, w.last, w.offset = segmentName(first), i+1 == len(segs), 0
		if first != w.next {
			if err := w.damage("is missing: a segment begins here that does not follow on the one before"); err != nil {
				return err
			}
			w.next = first
		}
		if err := w.file(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) damage(why string) error {
	return w.bad(&Damage{Seq: w.next, Segment: w.segment, Offset: w.offset, Why: why, last: w.last})
}

// file reads one segment.
func (w *walk) file(ctx context.Context) error {
	f, err := os.Open(filepath.Join(w.dir, w.segment))
	if err != nil {
		return err
	}
	defer f.Close()
	if w.from > w.next {
		w.offset, w.next = seek(f, w.next, w.from)
	}
	if _, err := f.Seek(w.offset, io.SeekStart); err != nil {
		return err
	}
	w.in.Reset(f)
	for n := 0; ; n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := w.in.ReadSlice('\n')
		switch {
		case err == nil:
			err = w.one(line[:len(line)-1])
			w.offset += int64(len(line))
		case errors.Is(err, io.EOF):
			if len(line) > 0 && !w.last {
				err = w.damage("is cut off")
				w.next++
				return err
			}
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			err = w.long(line)
		}
		if err != nil {
			return err
		}
	}
}

// long skips a line that is longer than any. Without an end it is a partial last line.
func (w *walk) long(line []byte) error {
	blank, size, err := bytes.IndexByte(line, 0) >= 0, int64(len(line)), error(nil)
	for err = bufio.ErrBufferFull; errors.Is(err, bufio.ErrBufferFull); {
		line, err = w.in.ReadSlice('\n')
		size += int64(len(line))
	}
	if errors.Is(err, io.EOF) && w.last {
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	err = w.bad(&Damage{Seq: w.next, Segment: w.segment, Offset: w.offset, Why: fmt.Sprintf("has %d bytes", size), last: w.last, blank: blank})
	w.next++
	w.offset += size
	return err
}

// one reads one line.
func (w *walk) one(line []byte) error {
	r, err := Unmarshal(line)
	if err != nil {
		err = w.bad(&Damage{Seq: w.next, Segment: w.segment, Offset: w.offset, Why: "cannot be read: " + err.Error(), last: w.last,
			blank: bytes.IndexByte(line, 0) >= 0})
		w.next++
		return err
	}
	if r.Seq != w.next {
		if err := w.damage(fmt.Sprintf("is not here: its place has record %d", r.Seq)); err != nil {
			return err
		}
		if r.Seq < w.next { // again, or out of order
			return nil
		}
		w.next = r.Seq
	}
	w.next++
	if r.Seq < w.from {
		return nil
	}
	return w.line(line, r)
}
