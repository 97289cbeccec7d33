package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// recover compares the end of the log with the store's note of it, and prepares to cut off what a crash left: the first
// write does that, together with the note of it, so that the one is never without the other.
func (l *Log) recover(ctx context.Context) error {
	tl, err := l.readTail(ctx)
	if err != nil {
		return err
	}
	segs, err := segments(l.end.dir)
	if err != nil {
		return err
	}
	l.next, l.taker = 1, taker{tail: tl, known: map[string]uint64{}}
	if len(segs) == 0 {
		if tl.Seq > 0 {
			return &Damage{Seq: 1, Segment: segmentName(1), Why: fmt.Sprintf("is missing: the log is empty, the store knows of record %d", tl.Seq)}
		}
		l.end.first = 1
		return l.end.open(true)
	}
	if err := checkChain(l.end.dir, segs, tl.Seq); err != nil {
		return err
	}
	l.end.first = segs[len(segs)-1]
	cut, err := l.readEnd(ctx, segs, tl)
	if err != nil {
		return err
	}
	if err := l.checkAhead(ctx, tl); err != nil {
		return err
	}
	if err := l.end.open(false); err != nil {
		return err
	}
	if l.end.torn = cut > 0; cut > 0 {
		l.log.Warn("what a crash cut off is removed from the audit log", "bytes", cut, "after_record", l.next-1)
		l.owed = append(l.owed, Record{Time: time.Now().UTC(), Kind: "recover", Op: "cut",
			Cause: fmt.Sprintf("%d bytes after the last whole record were removed", cut)})
	}
	return nil
}

func (l *Log) readTail(ctx context.Context) (tail, error) {
	var tl tail
	raw, err := l.src.Tail(ctx)
	if err != nil {
		return tl, fmt.Errorf("audit tail: %w", err)
	}
	if raw == nil {
		return tl, nil
	}
	if err := json.Unmarshal(raw, &tl); err != nil {
		return tl, fmt.Errorf("%w: the store's note of it: %w", ErrDamaged, err)
	}
	return tl, nil
}

// checkChain tells whether each segment before the one with record seq ends where the next begins.
func checkChain(dir string, segs []uint64, seq uint64) error {
	if segs[0] != 1 {
		return &Damage{Seq: 1, Segment: segmentName(1), Why: "is missing: the log begins with record " + fmt.Sprint(segs[0])}
	}
	for i := 0; i+1 < len(segs) && segs[i+1] <= seq; i++ {
		name := segmentName(segs[i])
		last, whole, err := lastSequence(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		if !whole || last+1 != segs[i+1] {
			return &Damage{Seq: min(last+1, segs[i+1]), Segment: name, Why: fmt.Sprintf("is wrong: the segment ends with record %d, the next begins with %d", last, segs[i+1])}
		}
	}
	return nil
}

// lastSequence reads the last line of a segment.
func lastSequence(name string) (seq uint64, whole bool, err error) {
	f, err := os.Open(name)
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return 0, false, err
	}
	err = linesBack(f, st.Size(), func(line []byte, ended bool) (bool, error) {
		r, err := Unmarshal(line)
		seq, whole = r.Seq, ended && err == nil
		return false, nil
	})
	return seq, whole, err
}

// readEnd reads the segments from the one with the store's last line on. It returns how much of the last is to be cut.
func (l *Log) readEnd(ctx context.Context, segs []uint64, tl tail) (cut int64, err error) {
	var noted Record
	w := walk{dir: l.end.dir, bad: func(d *Damage) error { return d }, line: func(_ []byte, r Record) error {
		if r.Seq == tl.Seq {
			noted = r
		}
		if r.Seq > tl.Seq && r.Rev > 0 {
			l.taker.known[r.OpID] = r.Seq
		}
		return nil
	}}
	for _, first := range segs {
		if first <= max(tl.Seq, 1) {
			w.from = first
		}
	}
	err = w.run(ctx)
	var d *Damage
	if errors.As(err, &d) && d.last && d.blank && d.Seq > tl.Seq {
		err = nil
	}
	if err != nil {
		return 0, err
	}
	l.next, l.end.size = w.next, w.offset
	if d != nil {
		l.next, l.end.size = d.Seq, d.Offset
	}
	if l.next <= tl.Seq {
		return 0, &Damage{Seq: l.next, Segment: w.segment, Offset: w.offset, Why: fmt.Sprintf("is missing: the store knows of record %d", tl.Seq)}
	}
	if tl.Op != "" && (noted.OpID != tl.Op || noted.Rev != tl.Rev) {
		return 0, &Damage{Seq: tl.Seq, Segment: w.segment, Why: fmt.Sprintf("is operation %s of revision %d, the store knows of %s of %d",
			noted.OpID, noted.Rev, tl.Op, tl.Rev)}
	}
	st, err := os.Stat(filepath.Join(l.end.dir, segmentName(l.end.first)))
	if err != nil {
		return 0, err
	}
	return st.Size() - l.end.size, nil
}

// checkAhead tells whether the store knows the last change after its note. Of several, it may have dropped the first.
func (l *Log) checkAhead(ctx context.Context, tl tail) error {
	var op string
	var seq uint64
	for o, s := range l.taker.known {
		if s > seq {
			op, seq = o, s
		}
	}
	for after := tl.Rev; seq > 0; {
		in, err := l.src.Intents(ctx, after, takeAtOnce)
		if err != nil {
			return fmt.Errorf("audit intents: %w", err)
		}
		for _, x := range in {
			if formatOp(x.Op) == op {
				return nil
			}
			after = x.Rev
		}
		if len(in) == 0 {
			return &Damage{Seq: seq, Segment: segmentName(l.end.first), Why: "is of a change that the store does not know: the store is older than the log"}
		}
	}
	return nil
}
