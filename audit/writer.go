package audit

import (
	"fmt"
	"runtime"
	"time"
)

const (
	idleRound = time.Second           // refusals are counted out, and the store is asked, even if nobody wakes the log
	dropAfter = 20 * time.Millisecond // intents wait so long for others to be dropped with
)

// run is the writer. Each round writes and syncs what waits (notes, refusals, records, then intents), answers, and lets
// the store drop the intents.
func (l *Log) run() {
	defer close(l.done)
	for {
		look, stopping := l.sleep()
		more := l.round(l.takeBatch(), look, stopping)
		for stopping && more && l.Healthy() == nil {
			more = l.round(newBatch(), true, true)
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

// sleep waits for something to do. look: the store may have intents.
func (l *Log) sleep() (look, stopping bool) {
	wait := idleRound
	if d, failing := l.pause(); failing {
		wait = d
	} else if d, ok := l.taker.dropIn(); ok {
		wait = d
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-l.kick:
		runtime.Gosched() // let others who were answered by the last round join
		select {
		case <-l.wake:
			look = true
		default:
		}
	case <-l.wake:
		look = true
	case <-t.C:
		look = true
	case <-l.stop:
		return true, true
	}
	return look, false
}

func (l *Log) takeBatch() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.batch
	l.batch = newBatch()
	return b
}

// group is what one round writes.
type group struct {
	buf     []byte
	next    uint64   // sequence after the last line
	refused []Record // taken out of the refusals
	intents []Intent
	tail    tail
}

// round writes one group. It returns whether there are more intents.
func (l *Log) round(b *batch, look, all bool) (more bool) {
	defer close(b.done)
	g := group{next: l.next, refused: l.refusals.due(all || b.sync, time.Now()), tail: l.taker.tail}
	if look || b.sync {
		g.intents, more, b.srcErr = l.taker.intents(l.src)
		if b.srcErr != nil {
			l.log.Error("the store's audit intents cannot be read", "error", b.srcErr)
		}
	}
	l.render(&g, b)
	if err := l.write(g.buf); err != nil {
		b.err = fmt.Errorf("%w: %w", ErrUnavailable, err)
		l.turnedAway(len(b.lines))
		l.refusals.giveBack(g.refused, time.Now())
		return false
	}
	l.next, l.owed = g.next, nil
	l.taker.took(g.intents, g.tail)
	b.rev, b.caughtUp = g.tail.Rev, !more && b.srcErr == nil
	if err := l.taker.drop(l.src, all || b.sync); err != nil {
		l.log.Error("the store did not drop its audit intents; that is tried again", "error", err)
	}
	return more
}

// render makes the lines of a group.
func (l *Log) render(g *group, b *batch) {
	for _, r := range l.owed {
		l.line(g, r)
	}
	if r, ok := l.healing(); ok {
		l.line(g, r)
	}
	for _, r := range g.refused {
		l.line(g, r)
	}
	b.first = g.next
	for _, line := range b.lines {
		g.buf = number(g.buf, g.next, line)
		g.next++
	}
	for _, in := range g.intents {
		op := formatOp(in.Op)
		seq, there := l.taker.known[op]
		if !there {
			seq = g.next
			l.line(g, l.record(in, op))
		}
		g.tail = tail{Seq: seq, Rev: in.Rev, Op: op}
	}
}

// line adds a record; one that cannot be rendered is replaced by a note of that, for its place must not stay empty.
func (l *Log) line(g *group, r Record) {
	line, err := Marshal(r)
	if err != nil {
		l.log.Error("an audit record could not be rendered", "error", err, "kind", r.Kind, "op", r.Op)
		line, err = Marshal(unreadable(err, r.Rev, r.OpID, nil))
	}
	if err != nil { // not possible: it has nothing that could fail
		return
	}
	g.buf = number(g.buf, g.next, line)
	g.next++
}

// write appends buf, up to three times unless the disk is full or the log is unavailable already.
func (l *Log) write(buf []byte) error {
	if len(buf) == 0 {
		return nil
	}
	for {
		err := l.end.append(buf, l.next)
		if err == nil {
			l.healed()
			return nil
		}
		if l.failed(err) {
			return err
		}
		d, _ := l.pause()
		select {
		case <-time.After(d):
		case <-l.stop:
			return err
		}
	}
}

func (l *Log) finish() {
	if err := l.end.close(); err != nil {
		l.log.Warn("segment was not closed", "error", err)
	}
	if err := l.lock.Close(); err != nil {
		l.log.Warn("the lock was not closed", "error", err)
	}
}
