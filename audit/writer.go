package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// run is the writer: each round writes what waits (records, then intents), syncs once, answers, and lets the store drop
// the intents.
func (l *Log) run() {
	defer close(l.done)
	tick := time.NewTicker(idleRound)
	defer tick.Stop()
	for {
		var group []*waiting
		stopping := false
		select {
		case w := <-l.append:
			group = append(group, w)
		case <-l.wake:
		case <-tick.C:
			l.refuse.flush(false, time.Now(), l.enqueue)
		case <-l.stop:
			stopping = true
		}
		group = l.drain(group)
		more := l.round(group)
		for tries := 0; stopping && more && tries < 1000 && l.Healthy() == nil; tries++ {
			more = l.round(l.drain(nil))
		}
		if stopping {
			l.finish()
			return
		}
		if more {
			l.Wake()
		}
	}
}

func (l *Log) finish() {
	for _, w := range l.drain(nil) {
		w.answer(0, ErrClosed)
	}
	if err := l.file.Close(); err != nil {
		l.log.Warn("segment was not closed", "error", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.cond.Broadcast()
}

func (l *Log) drain(group []*waiting) []*waiting {
	for len(group) < takeAtOnce {
		select {
		case w := <-l.append:
			group = append(group, w)
		default:
			return group
		}
	}
	return group
}

func (w *waiting) answer(seq uint64, err error) {
	if w.done != nil {
		w.done <- result{seq, err}
	}
}

// round writes one group. It returns whether there may be more intents.
func (l *Log) round(group []*waiting) (more bool) {
	ctx := context.Background()
	intents, err := l.src.Intents(ctx, l.taken.Rev, takeAtOnce)
	if err != nil {
		l.log.Error("the store's audit intents cannot be read", "error", err)
		intents = nil
	}
	first := l.next
	buf, seq, tl, renderErr := l.render(group, intents)
	for tries := 1; ; tries++ {
		if err = l.write(buf); err == nil {
			break
		}
		l.failed(err)
		if isFull(err) || tries >= maxFailures {
			for _, w := range group {
				w.answer(0, fmt.Errorf("%w: %w", ErrUnavailable, err))
			}
			l.keep(group)
			return false
		}
		select {
		case <-l.stop:
			tries = maxFailures
		case <-time.After(retryAfter):
		}
	}
	l.next = seq
	for i, w := range group {
		w.answer(first+uint64(i), nil)
	}
	l.drop(ctx, intents, tl)
	more = len(intents) == takeAtOnce
	l.succeeded(tl, more, renderErr)
	return more
}

// keep puts refusals of a group that could not be written back in the queue: nobody else remembers them.
func (l *Log) keep(group []*waiting) {
	for _, w := range group {
		if w.done == nil {
			l.enqueue(w.r)
		}
	}
}

// render makes the lines. Intents that a crash left in the store although they are in the log get none.
func (l *Log) render(group []*waiting, intents []Intent) (buf []byte, seq uint64, tl tail, err error) {
	seq, tl = l.next, l.taken
	add := func(r Record) {
		r.Seq = seq
		line, merr := Marshal(r)
		if merr != nil {
			err = merr
			r = Record{Seq: seq, Time: time.Now(), Kind: "recover", Op: "unreadable", OpID: r.OpID, Rev: r.Rev, Cause: merr.Error()}
			line, _ = Marshal(r)
		}
		buf = append(append(buf, line...), '\n')
		seq++
	}
	for _, w := range group {
		add(w.r)
	}
	for _, in := range intents {
		r, uerr := Unmarshal(in.Data)
		if uerr != nil {
			r = Record{Time: time.Now(), Kind: "recover", Op: "unreadable", Cause: uerr.Error()}
		}
		r.Rev, r.OpID = in.Rev, formatOp(in.Op)
		if !l.recent[r.OpID] {
			add(r)
		}
		tl = tail{Seq: seq - 1, Rev: in.Rev}
	}
	return buf, seq, tl, err
}

func formatOp(op [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", op[0:4], op[4:6], op[6:8], op[8:10], op[10:16])
}

// write appends and syncs; on any error the file is cut back, so that the next try begins where the synced bytes end.
func (l *Log) write(buf []byte) error {
	if len(buf) == 0 {
		return nil
	}
	if l.size >= l.opts.SegmentBytes {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	_, err := l.file.WriteAt(buf, l.size)
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return errors.Join(err, l.file.Truncate(l.size))
	}
	l.size += int64(len(buf))
	return nil
}

// drop lets the store forget the intents. If it cannot, they are taken again, and recognised.
func (l *Log) drop(ctx context.Context, intents []Intent, tl tail) {
	ops := l.undropped
	for _, in := range intents {
		ops = append(ops, in.Op)
	}
	if len(ops) == 0 {
		return
	}
	raw, err := json.Marshal(tl)
	if err == nil {
		err = l.src.Taken(ctx, ops, raw)
	}
	l.taken = tl
	if err != nil {
		l.undropped = ops
		l.log.Error("the store did not drop its audit intents; the next round tries again", "error", err)
		return
	}
	l.undropped = nil
	for _, in := range intents {
		delete(l.recent, formatOp(in.Op))
	}
}

func (l *Log) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures++
	l.log.Error("the audit log cannot be written", "error", err, "failures", l.failures)
	if isFull(err) || l.failures >= maxFailures {
		l.health = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	l.cond.Broadcast()
}

func (l *Log) succeeded(tl tail, more bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.health != nil {
		l.log.Info("the audit log can be written again")
	}
	if err != nil {
		l.log.Error("a record could not be rendered", "error", err)
	}
	l.failures, l.health, l.rev = 0, nil, tl.Rev
	if !more {
		l.checked++
	}
	l.cond.Broadcast()
}
