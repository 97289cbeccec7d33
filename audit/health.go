package audit

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxFailures = 3 // in a row, then nothing may be changed
	firstRetry  = 50 * time.Millisecond
	lastRetry   = 5 * time.Second
	nagEvery    = 30 * time.Second // an error that stays is logged again
)

// health is whether the log can be written.
type health struct {
	failures int       // in a row
	since    time.Time // of the first of them
	err      error     // why nothing may be changed
	turned   int       // records that were turned away meanwhile
}

// Healthy is nil, or ErrUnavailable with why nothing may be changed now: the log's volume is full, or writing failed
// three times in a row. The log keeps trying, and turns healthy when a record is written and synced again.
func (l *Log) Healthy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health.err
}

// failed notes a failure and returns whether the log is unavailable.
func (l *Log) failed(err error) (unavailable bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := &l.health
	before := h.err != nil
	if h.failures++; h.failures == 1 {
		h.since = time.Now()
	}
	if isFull(err) || h.failures >= maxFailures {
		h.err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if now := time.Now(); h.err == nil || !before || now.Sub(l.nagged) >= nagEvery {
		l.nagged = now
		l.log.Error("the audit log cannot be written", "error", err, "failures", h.failures, "changes_allowed", h.err == nil)
	}
	return h.err != nil
}

// turnedAway counts records whose writers were told that they are not written.
func (l *Log) turnedAway(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.health.turned += n
}

func (l *Log) healed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.health.err != nil {
		l.log.Warn("the audit log can be written again", "after", time.Since(l.health.since), "turned_away", l.health.turned)
	}
	l.health = health{}
}

// healing is the record with which an unavailable log tries itself: if it is synced, the log works again, and says what
// is not in it.
func (l *Log) healing() (Record, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	h := l.health
	if h.err == nil {
		return Record{}, false
	}
	return Record{Time: time.Now().UTC(), Kind: "recover", Op: "writable", Errno: errnoName(h.err),
		Cause: fmt.Sprintf("nothing could be written since %s; %d records were turned away", h.since.UTC().Format(time.RFC3339), h.turned)}, true
}

// pause is how long to wait before the next try.
func (l *Log) pause() (d time.Duration, failing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.health.failures == 0 {
		return 0, false
	}
	return min(lastRetry, firstRetry<<min(l.health.failures-1, 10)), true
}

func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

func errnoName(err error) string {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return ""
}
