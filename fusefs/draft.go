package fusefs

import (
	"context"
	"time"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// draftState of a draft. The zero value holds nothing.
type draftState uint8

const (
	draftClean     draftState = iota // equal to base, which was the head when it was committed
	draftTruncated                   // opened with O_TRUNC and not written: committed at the last close only
	draftDirty                       // written: committed at FLUSH and FSYNC
)

// draft is what one session has written to one file and not committed. All fields are guarded by node.mu.
type draft struct {
	node    *node
	session *backend.Session
	state   draftState
	base    store.Sum        // content of the head that it started from
	buf     *backend.Scratch // the whole content, unless appendOnly; nil: none yet
	shared  bool             // a commit is reading buf: copy before writing, and leave the closing to it

	appendOnly bool  // buf holds only what was appended to the head, whatever that is when it commits
	headSize   int64 // of the head when the first byte was appended: what this session sees before its own bytes

	mtime     time.Time
	changes   uint64                  // counts modifications, so that a commit knows whether there were more meanwhile
	writers   map[string]backend.Proc // processes that modified it since it was last clean
	readers   map[string]bool         // processes that have read it since
	handles   map[*handle]struct{}    // that took part: they become stale together
	failed    error                   // of the last commit: the last close does not try again
	idle      *time.Timer             // commits an append draft that nobody writes to
	forBackup bool                    // continues an editor's backup rename: if never written, nothing happened
	dropped   bool                    // not in node.drafts any more
}

const idleAppend = time.Second // SEMANTICS.md section 3

// shows tells whether the session must see the draft instead of the head.
func (d *draft) shows() bool { return d.state != draftClean || d.node.gone }

// held is the length of buf.
func (d *draft) held() int64 {
	if d.buf == nil {
		return 0
	}
	return d.buf.Size()
}

func (d *draft) size() int64 {
	if d.appendOnly {
		return d.headSize + d.held()
	}
	return d.held()
}

// own makes buf safe to change.
func (d *draft) own() error {
	switch {
	case d.buf == nil:
		d.buf = d.node.m.mem.NewScratch()
	case d.shared:
		c, err := d.buf.Copy(0)
		if err != nil {
			return err
		}
		d.buf, d.shared = c, false
	}
	return nil
}

// replace takes other bytes.
func (d *draft) replace(buf *backend.Scratch) {
	if !d.shared {
		d.buf.Close()
	}
	d.buf, d.shared = buf, false
}

// touch notes a modification by a process.
func (d *draft) touch(state draftState, p backend.Proc) {
	d.state = state
	d.changes++
	d.mtime = time.Now()
	d.failed = nil
	if p.Key != "" {
		d.writers[p.Key] = p
		d.readers[p.Key] = true
	}
}

func (d *draft) resize(size int64) error {
	if err := d.own(); err != nil {
		return err
	}
	return d.buf.Truncate(size)
}

func (d *draft) writeAt(p []byte, off int64) error {
	if err := d.own(); err != nil {
		return err
	}
	_, err := d.buf.WriteAt(p, off)
	return err
}

// readAt reads the draft as the session sees it. For an append draft, head is the content before its own bytes.
func (d *draft) readAt(p []byte, off int64, head store.Bytes) (int, error) {
	n := 0
	if d.appendOnly && off < d.headSize {
		want := min(int64(len(p)), d.headSize-off)
		got, err := readFull(head, p[:want], off)
		if n = got; err != nil || int64(got) < want {
			return n, err
		}
	}
	if d.appendOnly {
		off += int64(n) - d.headSize
	}
	if d.buf == nil {
		return n, nil
	}
	got, err := readFull(d.buf, p[n:], off)
	return n + got, err
}

// readFull is ReadAt without the io.EOF of a short read.
func readFull(c store.Bytes, p []byte, off int64) (int, error) {
	if c == nil || off >= c.Size() {
		return 0, nil
	}
	p = p[:min(int64(len(p)), c.Size()-off)]
	n, err := c.ReadAt(p, off)
	if n == len(p) {
		err = nil
	}
	return n, err
}

// draftOf returns the session's draft of this node, making a clean empty one if there is none. n.mu is held.
func (n *node) draftOf(s *backend.Session) *draft {
	d := n.drafts[s]
	if d == nil {
		d = &draft{node: n, session: s, writers: map[string]backend.Proc{}, readers: map[string]bool{}, handles: map[*handle]struct{}{}}
		n.drafts[s] = d
	}
	return d
}

// drop forgets a draft; its bytes are gone. n.mu is held.
func (n *node) drop(d *draft) {
	if n.drafts[d.session] == d {
		delete(n.drafts, d.session)
	}
	d.dropped = true
	d.replace(nil)
	if d.idle != nil {
		d.idle.Stop()
	}
}

// commit saves the draft through the view and the caller of a handle that took part. n.mu is held on entry and on
// return, but not while the store works: a commit waits until the kernel has dropped its pages, and for that the kernel
// may have to send us a WRITE.
func (n *node) commit(ctx context.Context, d *draft, h *handle, op string) error {
	for d.committing(n) { // one at a time
	}
	if d.dropped || d.state == draftClean {
		return nil
	}
	if n.gone {
		return n.commitGone(d, h, op)
	}
	r := backend.SaveRequest{ID: n.id, Base: d.base, Mtime: d.mtime, Op: op}
	if n.isPending() {
		r.Pending = n.pending
	}
	if err := d.own(); err != nil {
		return err
	}
	content, changes := d.buf, d.changes
	if d.appendOnly {
		r.Append = content
	} else {
		r.Content = content
	}
	length := content.Size()
	d.shared = true
	saved, err := n.save(ctx, h, r)
	if d.buf == content {
		d.shared = false
	} else {
		content.Close()
	}
	if err != nil {
		return n.commitFailed(d, h, err)
	}
	return n.committed(d, saved, changes, length)
}

// save gives n.mu up while the store works; other commits of this node wait.
func (n *node) save(ctx context.Context, h *handle, r backend.SaveRequest) (backend.Node, error) {
	if r.Pending != nil {
		place, _ := r.Pending.Place()
		defer n.m.notify.mine(place)()
	}
	done := make(chan struct{})
	n.saving = done
	n.mu.Unlock()
	defer func() { // also when something below panics: go-fuse turns that into EIO
		n.mu.Lock()
		n.saving = nil
		close(done)
	}()
	return h.view.Save(ctx, h.caller, r)
}

// committing waits for another commit of this node to end; false if there is none. n.mu is given up meanwhile.
func (d *draft) committing(n *node) bool {
	if n.saving == nil {
		return false
	}
	wait := n.saving
	n.mu.Unlock()
	<-wait
	n.mu.Lock()
	return true
}

// committed makes the new head the base of the draft and of every handle that took part.
func (n *node) committed(d *draft, saved backend.Node, changes uint64, length int64) error {
	n.pending = nil
	if !n.gone {
		n.last = saved
	}
	d.failed = nil
	d.base = saved.Head.Sum
	for h := range d.handles {
		h.base = saved.Head.Sum
	}
	if d.changes == changes {
		d.state = draftClean
		clear(d.writers)
		clear(d.readers)
		if d.appendOnly {
			d.replace(nil)
			d.appendOnly = false
		}
		return nil
	}
	if !d.appendOnly {
		return nil
	}
	if err := d.buf.DropFront(length); err != nil { // what was appended meanwhile is left
		for h := range d.handles {
			h.refused = true
		}
		n.drop(d)
		return err
	}
	d.headSize = saved.Head.Size
	return nil
}

// commitFailed keeps the draft for another try at the next FLUSH, unless it is stale: then everyone who took part is
// refused from now on.
func (n *node) commitFailed(d *draft, h *handle, err error) error {
	d.failed = err
	switch {
	case isStale(err):
		d.loseDraft(err, false)
	case isGone(err): // somebody else removed it
		return n.loseGone(d, h, "close")
	default:
		return err
	}
	h.refused = true
	n.drop(d)
	return err
}

// loseGone refuses a draft of a file that somebody else removed, and keeps its bytes.
func (n *node) loseGone(d *draft, h *handle, op string) error {
	d.loseDraft(nil, true)
	h.refused = true
	n.drop(d)
	if h.lost == nil {
		return h.view.Stale(h.caller, op, n.last, "")
	}
	h.keep(context.Background())
	return backend.ErrStale
}

// commitGone ends the writing to a file that has no name any more: its session knows, for it removed the name itself;
// for any other this is a lost write, and it is told.
func (n *node) commitGone(d *draft, h *handle, op string) error {
	if n.goneBy == h.caller.Session {
		if d.state == draftTruncated {
			d.state = draftDirty
		}
		return nil
	}
	return n.loseGone(d, h, op)
}

// armIdle starts the clock of an append draft. n.mu is held.
func (n *node) armIdle(d *draft, h *handle) {
	if d.idle != nil {
		d.idle.Stop()
	}
	d.idle = time.AfterFunc(idleAppend, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if d.dropped || !d.appendOnly || d.state != draftDirty {
			return
		}
		if err := n.commit(context.Background(), d, h, "append"); err != nil {
			n.m.log.Warn("an idle append could not be committed; its writer will be told", "error", err)
		}
	})
}
