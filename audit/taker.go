package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// tail is what the store keeps of the log's progress: the line of the last intent that it dropped.
type tail struct {
	Seq uint64 `json:"seq"`
	Rev uint64 `json:"rev"`
	Op  string `json:"op,omitempty"` // op_id of that line
}

// taker takes intents over. It belongs to the writer goroutine.
type taker struct {
	tail  tail              // of the log: every intent up to its revision has a line
	known map[string]uint64 // lines that a crash left in the log and in the store, by op_id

	ops   [][16]byte // have a line, and are to be dropped
	next  time.Time  // when to drop them
	tries int        // that failed
}

const (
	takeAtOnce  = 1024 // intents of one round
	dropAtOnce  = 256  // so many do not wait for more
	sourceLimit = 30 * time.Second
	maxQuoted   = 4 << 10 // bytes of an unreadable intent that are kept
)

// intents lists what has no line yet.
func (t *taker) intents(src Source) (in []Intent, more bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), sourceLimit)
	defer cancel()
	in, err = src.Intents(ctx, t.tail.Rev, takeAtOnce)
	if err != nil {
		return nil, false, fmt.Errorf("audit intents: %w", err)
	}
	last := t.tail.Rev
	for i, x := range in {
		if x.Rev <= last {
			return in[:i], false, fmt.Errorf("audit intents: revision %d comes after revision %d", x.Rev, last)
		}
		last = x.Rev
	}
	return in, len(in) >= takeAtOnce, nil
}

// took notes that the intents are in the log, synced.
func (t *taker) took(in []Intent, tl tail) {
	if len(in) > 0 && len(t.ops) == 0 {
		t.next = time.Now().Add(dropAfter)
	}
	for _, x := range in {
		t.ops = append(t.ops, x.Op)
		delete(t.known, formatOp(x.Op))
	}
	t.tail = tl
}

// dropIn is when the store is to drop intents; false if there are none.
func (t *taker) dropIn() (time.Duration, bool) {
	return max(0, time.Until(t.next)), len(t.ops) > 0
}

// drop lets the store drop the intents, if it is time for it.
func (t *taker) drop(src Source, now bool) error {
	if len(t.ops) == 0 || !now && time.Now().Before(t.next) && (len(t.ops) < dropAtOnce || t.tries > 0) {
		return nil
	}
	raw, err := json.Marshal(t.tail)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), sourceLimit)
	defer cancel()
	if err := src.Taken(ctx, t.ops, raw); err != nil {
		t.tries++
		t.next = time.Now().Add(min(lastRetry, firstRetry<<min(t.tries, 10)))
		return err
	}
	t.ops, t.tries = nil, 0
	return nil
}

// record is the record of an intent.
func (l *Log) record(in Intent, op string) Record {
	r, err := Unmarshal(in.Data)
	if err != nil {
		l.log.Error("an audit intent cannot be read", "op_id", op, "revision", in.Rev, "error", err)
		return unreadable(err, in.Rev, op, in.Data)
	}
	r.Seq, r.Rev, r.OpID, r.Time = 0, in.Rev, op, r.Time.UTC()
	return r
}

// unreadable stands in for a record that cannot be made; Verify finds it.
func unreadable(err error, rev uint64, op string, data []byte) Record {
	return Record{Rev: rev, Time: time.Now().UTC(), Kind: "recover", Op: "unreadable", OpID: op,
		Cause: clip(err.Error()) + ": " + Quote(clip(string(data)))}
}

func clip(s string) string { return s[:min(len(s), maxQuoted)] }

func formatOp(op [16]byte) string { return uuid.UUID(op).String() }
