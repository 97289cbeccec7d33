package store

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"memoryfs/backend/kv"
)

// Store is the versioned memory. Safe for concurrent use.
type Store struct {
	kv      kv.Store
	opts    Options
	garbage chan Sum
	files   *blobDir // of chunks; nil: they are in kv
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu       sync.Mutex // guards the block of inode numbers
	nextIno  uint64
	endIno   uint64
	closeOne sync.Once
	closeErr error
}

const (
	formatVersion = 1
	featureFiles  = 1 // chunks may be files
	rootIno       = 1
	inoBlock      = 4096
	maxTries      = 64 // of a commit that loses races which do not concern its own precondition
	maxName       = 255
	maxXattrs     = 64 << 10 // bytes of names and values on one inode

	defaultMaxFile   = 64 << 20
	defaultChunkSize = 256 << 10
)

// Open checks the format and makes what a new store needs. It owns engine from now on: Close closes it.
func Open(ctx context.Context, engine kv.Store, o Options) (*Store, error) {
	if o.MaxFile == 0 {
		o.MaxFile = defaultMaxFile
	}
	if o.ChunkSize == 0 {
		o.ChunkSize = defaultChunkSize
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{kv: engine, opts: o, garbage: make(chan Sum, 1024)}
	if o.BlobDir != "" {
		s.files = &blobDir{dir: o.BlobDir, room: o.Room}
	}
	if err := s.format(ctx); err != nil {
		return nil, err
	}
	if s.files != nil {
		if err := s.openFiles(ctx); err != nil {
			return nil, fmt.Errorf("chunk files: %w", err)
		}
	}
	if err := s.collectMarked(ctx); err != nil && !errors.Is(err, kv.ErrNoSpace) {
		return nil, fmt.Errorf("collect garbage: %w", err)
	}
	run, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	s.done.Go(func() { s.collector(run) })
	return s, nil
}

// format reads m, or makes the store: m, the root and the counter in one commit.
func (s *Store) format(ctx context.Context) error {
	snap, err := s.kv.Snapshot(ctx)
	if err != nil {
		return err
	}
	defer snap.Close()
	e, err := snap.Get(keyMeta())
	if err != nil {
		return err
	}
	if e[0].Rev == 0 {
		return s.create(ctx)
	}
	r := &reader{b: e[0].Value}
	version := r.uint()
	r.id()
	features := r.uint()
	if err := r.end("format"); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if features&featureFiles != 0 && s.files == nil {
		return fmt.Errorf("%w: it has chunk files, and no directory of them is given", ErrFormat)
	}
	if version == formatVersion && features == 0 && s.files != nil { // made before there were chunk files
		meta := e[0].Value[:len(e[0].Value)-1]
		_, err := s.kv.Commit(ctx, []kv.Guard{kv.KeyRev(keyMeta(), e[0].Rev)}, []kv.Op{kv.Put(keyMeta(), append(meta, featureFiles))})
		return err
	}
	if version != formatVersion || features&^featureFiles != 0 {
		return fmt.Errorf("%w: version %d, features %x; this program knows version %d", ErrFormat, version, features, formatVersion)
	}
	return nil
}

func (s *Store) create(ctx context.Context) error {
	w := &writer{}
	w.uint(formatVersion)
	id := s.NewID()
	w.raw(id[:])
	if s.files != nil {
		w.uint(featureFiles)
	} else {
		w.uint(0)
	}
	now := s.opts.Now()
	root := Inode{ID: RootID, Type: TypeDir, Mode: 0o755, Ino: rootIno, Ctime: now, Mtime: now, Atime: now, Btime: now}
	_, err := s.kv.Commit(ctx, []kv.Guard{kv.KeyRev(keyMeta(), 0)}, []kv.Op{
		kv.Put(keyMeta(), w.b), kv.Put(keyInode(RootID), encodeInode(root)),
		kv.Put(keyIno(), binary.BigEndian.AppendUint64(nil, rootIno+1)),
	})
	return err
}

// Close stops the collector and closes the engine.
func (s *Store) Close() error {
	s.closeOne.Do(func() {
		s.stop()
		s.done.Wait()
		s.closeErr = s.kv.Close()
	})
	return s.closeErr
}

// Usage is the engine's, with the chunk files.
func (s *Store) Usage() (kv.Usage, error) {
	u, err := s.kv.Usage()
	if s.files != nil {
		u.Used += uint64(s.files.used.Load())
	}
	return u, err
}

// NewID makes an id: a UUIDv7, so that ids sort by their making.
func (s *Store) NewID() ID {
	id, err := uuid.NewV7()
	if err != nil { // the system's random source failed: a time-based fallback would not be unique
		panic(fmt.Sprintf("no random numbers: %v", err))
	}
	return ID(id)
}

// NewIno gives out an inode number: unique for ever, in blocks of inoBlock a commit. Numbers of a block that was begun
// before a restart are not used.
func (s *Store) NewIno(ctx context.Context) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nextIno < s.endIno {
		s.nextIno++
		return s.nextIno - 1, nil
	}
	for range maxTries {
		first, err := s.reserveInos(ctx)
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err != nil {
			return 0, err
		}
		s.nextIno, s.endIno = first+1, first+inoBlock
		return first, nil
	}
	return 0, fmt.Errorf("inode numbers: %w", kv.ErrConflict)
}

func (s *Store) reserveInos(ctx context.Context) (uint64, error) {
	snap, err := s.kv.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer snap.Close()
	e, err := snap.Get(keyIno())
	if err != nil {
		return 0, err
	}
	if len(e[0].Value) != 8 {
		return 0, fmt.Errorf("inode counter: %w", ErrCorrupt)
	}
	first := binary.BigEndian.Uint64(e[0].Value)
	_, err = s.kv.Commit(ctx, []kv.Guard{kv.KeyRev(keyIno(), e[0].Rev)},
		[]kv.Op{kv.Put(keyIno(), binary.BigEndian.AppendUint64(nil, first+inoBlock))})
	return first, err
}

func (s *Store) now(ch Change) time.Time {
	if ch.Time.IsZero() {
		return s.opts.Now()
	}
	return ch.Time
}

// plan is one commit in the making.
type plan struct {
	guards  []kv.Guard
	ops     []kv.Op
	changed Changed
	garbage []Sum // to look at when it is done
}

func (p *plan) guard(g ...kv.Guard) { p.guards = append(p.guards, g...) }

// put adds operations; of several on one key the last counts.
func (p *plan) put(ops ...kv.Op) {
	for _, op := range ops {
		replaced := false
		for i := range p.ops {
			if string(p.ops[i].Key) == string(op.Key) {
				p.ops[i], replaced = op, true
			}
		}
		if !replaced {
			p.ops = append(p.ops, op)
		}
	}
}

func (p *plan) use(st stored) {
	p.guard(st.guards...)
	p.ops = append(p.ops, st.ops...) // thousands for a large file: never twice the same key
}

// touch notes that a directory's names change.
func (p *plan) touch(dir ID, t time.Time) {
	p.put(kv.Put(keyTouch(dir), binary.BigEndian.AppendUint64(nil, uint64(t.UnixNano()))))
}

// drop lets go of a blob.
func (p *plan) drop(sum Sum, size int64, id ID, n uint64) {
	if size > 0 {
		p.put(dropRef(sum, size, id, n)...)
		p.garbage = append(p.garbage, sum)
	}
}

// addVersion puts a version record.
func (p *plan) addVersion(v Version) error {
	b, err := encodeVersion(v)
	p.put(kv.Put(keyVersion(v.Memory, v.Number), b))
	p.put(addRef(v.Sum, v.Size, v.Memory, v.Number)...)
	return err
}

// newVersion fills what every version has.
func (s *Store) newVersion(id ID, n uint64, kind Kind, ch Change) Version {
	v := Version{Memory: id, Number: n, Kind: kind, Time: s.now(ch), Op: ch.Op, Prov: ch.Prov}
	if ch.Kind != "" {
		v.Kind = ch.Kind
	}
	rand.Read(v.Salt[:]) // never fails (crypto/rand)
	return v
}

// run makes plans until one commits. make reads the store anew each time; a nil plan means that there is nothing to do.
func (s *Store) run(ctx context.Context, ch Change, make func(*Snapshot) (*plan, error)) (kv.Rev, error) {
	for range maxTries {
		snap, err := s.Snapshot(ctx)
		if err != nil {
			return 0, err
		}
		p, err := make(snap)
		snap.Close()
		if err != nil || p == nil {
			return 0, err
		}
		if err := p.record(s.now(ch), ch); err != nil {
			return 0, err
		}
		rev, err := s.kv.Commit(ctx, p.guards, p.ops)
		if errors.Is(err, kv.ErrAmbiguous) {
			err = s.settle(ctx, ch, err)
			if err == nil {
				rev, err = s.Rev(ctx)
			}
		}
		if errors.Is(err, kv.ErrConflict) {
			continue
		}
		if err == nil {
			s.later(p.garbage...)
		}
		return rev, err
	}
	return 0, fmt.Errorf("too many lost races: %w", kv.ErrConflict)
}

// record adds the audit intent, the guard that lets a fence stop the commit, and the entry in the change index.
func (p *plan) record(t time.Time, ch Change) error {
	if ch.Record == nil {
		return nil
	}
	if ch.Kind != "" {
		p.changed.Kind = ch.Kind
	}
	b, err := ch.Record(p.changed)
	if err != nil {
		return fmt.Errorf("render the audit record: %w", err)
	}
	p.guard(kv.KeyRev(keyIntent(ch.Op), 0))
	p.ops = append(p.ops, kv.Put(keyIntent(ch.Op), append([]byte{formIntent}, b...)))
	if p.changed.Attr != "" {
		return nil
	}
	return p.logged(t, ch)
}

// settle finds out what became of an ambiguous commit: its fence is put if the intent is absent. Success means that the
// commit can never apply; a conflict that it did.
func (s *Store) settle(ctx context.Context, ch Change, cause error) error {
	if ch.Record == nil {
		return cause
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, err := s.kv.Commit(ctx, []kv.Guard{kv.KeyRev(keyIntent(ch.Op), 0)}, []kv.Op{kv.Put(keyIntent(ch.Op), []byte{formFence})})
	switch {
	case err == nil:
		return fmt.Errorf("%w: %w", kv.ErrUnavailable, cause)
	case errors.Is(err, kv.ErrConflict):
		return nil
	default:
		return errors.Join(cause, err)
	}
}

func checkName(name string) error {
	if name == "" || name == "." || name == ".." || len(name) > maxName {
		return fmt.Errorf("%q: %w", name, ErrInvalidName)
	}
	for i := range len(name) {
		if name[i] == '/' || name[i] == 0 {
			return fmt.Errorf("%q: %w", name, ErrInvalidName)
		}
	}
	return nil
}
