package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Options of Open. Zero values mean the defaults in parentheses.
type Options struct {
	Logger       hclog.Logger
	SegmentBytes int64 // a segment is ended past this size (64 MiB)
}

// Log is the log of one store: one process writes it. Safe for concurrent use.
type Log struct {
	dir    string
	src    Source
	opts   Options
	log    hclog.Logger
	refuse refusals

	wake   chan struct{}
	append chan *waiting
	stop   chan struct{}
	done   chan struct{}
	once   sync.Once

	// only the writer goroutine
	file      *os.File
	size      int64 // synced bytes of file
	next      uint64
	taken     tail
	undropped [][16]byte      // intents that the store could not drop at the first try
	recent    map[string]bool // op ids that are in the log and perhaps not dropped from the store yet

	mu       sync.Mutex
	cond     *sync.Cond
	rev      uint64 // every intent up to here is in the log
	checked  uint64 // counts the rounds after which the source had no more
	failures int
	health   error
	closed   bool
}

// tail is what the store keeps of the log's progress.
type tail struct {
	Seq uint64 `json:"seq"` // of the last line with an intent that was dropped
	Rev uint64 `json:"rev"`
}

// waiting is a record that its writer waits for; done may be nil.
type waiting struct {
	r    Record
	done chan result
}

type result struct {
	seq uint64
	err error
}

const (
	defaultSegment = 64 << 20
	takeAtOnce     = 1024 // intents of one round
	maxFailures    = 3    // in a row, then nothing may be changed
	retryAfter     = 200 * time.Millisecond
	idleRound      = time.Second // the source is asked that often even if nobody wakes the log
)

// Open reads the end of the log and starts to take intents over. ErrDamaged, naming the first bad record, if the log does
// not hold what the store says it has taken over, or cannot be read; a line that a crash cut off is removed and noted.
func Open(ctx context.Context, dir string, src Source, o Options) (*Log, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.SegmentBytes == 0 {
		o.SegmentBytes = defaultSegment
	}
	l := &Log{dir: dir, src: src, opts: o, log: o.Logger, wake: make(chan struct{}, 1), append: make(chan *waiting, 1024),
		stop: make(chan struct{}), done: make(chan struct{}), recent: map[string]bool{}}
	l.cond = sync.NewCond(&l.mu)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("audit directory: %w", err)
	}
	cut, err := l.recover(ctx)
	if err != nil {
		return nil, err
	}
	l.refuse.init()
	go l.run()
	if cut > 0 {
		l.log.Warn("a record that a crash cut off was removed", "bytes", cut)
		if _, err := l.Append(ctx, Record{Time: time.Now(), Kind: "recover", Op: "cut",
			Cause: fmt.Sprintf("%d bytes after the last whole record were removed", cut)}); err != nil {
			return nil, errors.Join(err, l.Close(ctx))
		}
	}
	return l, nil
}

// recover finds the end of the log, and cuts what a crash left after the last whole line of the last segment.
func (l *Log) recover(ctx context.Context) (cut int64, err error) {
	raw, err := l.src.Tail(ctx)
	if err != nil {
		return 0, fmt.Errorf("audit tail: %w", err)
	}
	if raw != nil {
		if err := json.Unmarshal(raw, &l.taken); err != nil {
			return 0, fmt.Errorf("%w: the store's note of it: %w", ErrDamaged, err)
		}
	}
	l.next, l.rev = 1, l.taken.Rev
	err = Scan(ctx, l.dir, l.taken.Seq, func(_ []byte, r Record) error {
		if l.next = r.Seq + 1; r.OpID != "" && r.Rev > l.taken.Rev {
			l.recent[r.OpID] = true
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	if l.next <= l.taken.Seq {
		return 0, fmt.Errorf("%w: it ends at record %d, the store knows of record %d", ErrDamaged, l.next-1, l.taken.Seq)
	}
	return l.openLast()
}

func (l *Log) openLast() (cut int64, err error) {
	segs, err := segments(l.dir)
	if err != nil {
		return 0, err
	}
	if len(segs) == 0 {
		return 0, l.rotate()
	}
	f, err := os.OpenFile(filepath.Join(l.dir, segmentName(segs[len(segs)-1])), os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}
	st, err := f.Stat()
	if err != nil {
		return 0, errors.Join(err, f.Close())
	}
	whole, err := lastNewline(f, st.Size())
	if err != nil {
		return 0, errors.Join(err, f.Close())
	}
	l.file, l.size = f, whole
	if whole == st.Size() {
		return 0, nil
	}
	if err := errors.Join(f.Truncate(whole), f.Sync()); err != nil {
		return 0, err
	}
	return st.Size() - whole, nil
}

// lastNewline is the offset after the last newline.
func lastNewline(f *os.File, size int64) (int64, error) {
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		from := max(0, end-int64(len(buf)))
		n, err := f.ReadAt(buf[:end-from], from)
		if err != nil {
			return 0, err
		}
		for i := n - 1; i >= 0; i-- {
			if buf[i] == '\n' {
				return from + int64(i) + 1, nil
			}
		}
		end = from
	}
	return 0, nil
}

// rotate begins a segment at the next sequence number.
func (l *Log) rotate() error {
	f, err := os.OpenFile(filepath.Join(l.dir, segmentName(l.next)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syncDir(l.dir); err != nil {
		return errors.Join(err, f.Close())
	}
	if l.file != nil {
		if err := l.file.Close(); err != nil {
			l.log.Warn("segment was not closed", "error", err)
		}
	}
	l.file, l.size = f, 0
	return f.Truncate(0) // what an attempt before left
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Append writes a record that is no change of the store, and returns its sequence once it is synced.
func (l *Log) Append(ctx context.Context, r Record) (uint64, error) {
	w := &waiting{r: r, done: make(chan result, 1)}
	select {
	case l.append <- w:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-l.stop:
		return 0, ErrClosed
	}
	select {
	case res := <-w.done:
		return res.seq, res.err
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-l.done:
		return 0, ErrClosed
	}
}

// Wake tells that there are intents.
func (l *Log) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Healthy is nil, or why nothing may be changed now: the log's volume is full, or it failed several times in a row.
func (l *Log) Healthy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health
}

// Sync returns when every intent of the store up to rev, and every refusal before the call, is in the log.
func (l *Log) Sync(ctx context.Context, rev uint64) error {
	l.refuse.flush(true, time.Now(), l.enqueue)
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.cond.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	goal := l.checked + 2 // one round may have begun before the refusals were queued
	for l.checked < goal && ctx.Err() == nil && !l.closed {
		if l.health != nil {
			return l.health
		}
		l.Wake()
		l.cond.Wait()
	}
	if l.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// Close takes over what there is, and closes the file.
func (l *Log) Close(context.Context) error {
	l.once.Do(func() {
		l.refuse.flush(true, time.Now(), l.enqueue)
		close(l.stop)
	})
	<-l.done
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.health
}

// enqueue hands over a record that nobody waits for; when the writer is far behind it is dropped and logged, so that a
// full disk never stops a refusal.
func (l *Log) enqueue(r Record) {
	select {
	case l.append <- &waiting{r: r}:
	default:
		l.log.Error("a refusal could not be recorded: the audit log is behind", "principal", r.Principal, "op", r.Op)
	}
}

func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }
