package audit

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Options of Open. Zero values mean the defaults in parentheses.
type Options struct {
	Logger       hclog.Logger
	SegmentBytes int64 // a segment ends before it grows past this size (64 MiB), unless one group of records is larger

	disk disk // the machine's; tests have others
}

// Log is the log of one store: one process writes it. Safe for concurrent use.
type Log struct {
	src      Source
	log      hclog.Logger
	refusals *refusals
	lock     *os.File
	wake     chan struct{} // intents or refusals may be there
	kick     chan struct{} // the batch has something
	stop     chan struct{} // closed by Close
	done     chan struct{} // closed by the writer

	// only the writer goroutine, and Open before it runs
	end    *end
	next   uint64 // sequence of the next line
	taker  taker
	owed   []Record // the log's own notes, before anything else
	nagged time.Time

	mu     sync.Mutex
	batch  *batch // guarded by mu: fills until the writer takes it
	health health // guarded by mu
	closed bool   // guarded by mu
}

// batch is the records that share one sync. Its results may be read once done is closed.
type batch struct {
	lines    [][]byte // marshalled without sequence
	sync     bool     // somebody waits for all refusals and intents
	done     chan struct{}
	first    uint64 // sequence of lines[0]
	rev      uint64 // every intent up to here is in the log
	caughtUp bool   // the store had no more intents
	err      error  // of writing
	srcErr   error  // of reading the intents
}

// maxBatch bounds the records that wait for a disk that does not answer.
const maxBatch = 1 << 16

const defaultSegment = 64 << 20

// Open reads the log from what the store knows of it on, and starts to take intents over. *Damage, naming the first bad
// record, if it does not hold what the store says it has taken over, has changes that the store does not know, or cannot
// be read. What a crash cut off is removed and noted. If the disk is full a log that exists opens, and Healthy says so; a directory
// that cannot be written is an error.
func Open(ctx context.Context, dir string, src Source, o Options) (*Log, error) {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = defaultSegment
	}
	if o.disk == nil {
		o.disk = machine{}
	}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("audit directory: %w", err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, fmt.Errorf("audit directory: %w", err)
	}
	l := &Log{src: src, log: o.Logger, refusals: newRefusals(), lock: lock, wake: make(chan struct{}, 1),
		kick: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}), batch: newBatch(),
		end: &end{dir: dir, disk: o.disk, max: o.SegmentBytes}}
	if err := l.recover(ctx); err != nil {
		_ = l.end.close()
		_ = lock.Close()
		return nil, err
	}
	if len(l.owed) > 0 {
		l.round(newBatch(), false, false)
	}
	go l.run()
	return l, nil
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// Append writes a record that is no change of the store, and returns its sequence once it is synced. ErrUnavailable if it
// cannot be written: then it is not in the log and will not be. When ctx ends first, it may or may not be written.
func (l *Log) Append(ctx context.Context, r Record) (uint64, error) {
	if r.Kind == "change" {
		return 0, fmt.Errorf("%w: a change is recorded by its intent", ErrRecord)
	}
	if r.Time.IsZero() {
		r.Time = time.Now()
	}
	r.Seq, r.Rev, r.Time = 0, 0, r.Time.UTC()
	line, err := Marshal(r)
	if err != nil {
		return 0, err
	}
	b, i, err := l.join(line)
	if err != nil {
		return 0, err
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.first + uint64(i), nil
}

// join adds a line to the batch that fills, or with nil asks for everything.
func (l *Log) join(line []byte) (*batch, int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.batch
	switch {
	case l.closed:
		return nil, 0, ErrClosed
	case line == nil:
		b.sync = true
	case len(b.lines) >= maxBatch:
		return nil, 0, fmt.Errorf("%w: %d records wait", ErrUnavailable, len(b.lines))
	default:
		b.lines = append(b.lines, line)
	}
	poke(l.kick)
	return b, len(b.lines) - 1, nil
}

// Wake tells that there are intents.
func (l *Log) Wake() { poke(l.wake) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Sync returns when every intent of the store up to rev, and every refusal before the call, is in the log and synced.
// ErrUnavailable if that cannot be done now.
func (l *Log) Sync(ctx context.Context, rev uint64) error {
	for {
		b, _, err := l.join(nil)
		if err != nil {
			return err
		}
		select {
		case <-b.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		switch {
		case b.err != nil:
			return b.err
		case b.srcErr != nil:
			return b.srcErr
		case b.caughtUp || b.rev >= rev:
			return nil
		}
	}
}

// Close takes over what there is, and closes the file. It returns why something could not be written, or ctx's error if
// that ends first; the writer ends by itself then, as soon as the disk answers. Close may be called again.
func (l *Log) Close(ctx context.Context) error {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	if first {
		close(l.stop)
	}
	select {
	case <-l.done:
		return l.Healthy()
	case <-ctx.Done():
		return fmt.Errorf("closing the audit log: %w", ctx.Err())
	}
}
