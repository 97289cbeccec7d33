package fusefs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/hashicorp/go-hclog"

	"memoryfs/backend"
	"memoryfs/backend/store"
	"memoryfs/policy"
)

// FSName is what df and /proc/self/mountinfo show as the source's type: fuse.memoryfs.
const FSName = "memoryfs"

// Config of a mount.
type Config struct {
	Dir          string
	Principal    string // of a one-principal mount
	Session      string // "": each caller's own, see SEMANTICS.md section 2
	Reason       string // these two win over what a caller's environment claims
	Conversation string
	Shared       bool // uid decides who the caller is; implies AllowOther
	AllowOther   bool // other users may enter: all of them are Principal
	Logger       hclog.Logger
	Debug        bool // every request to the log, for a trace
}

// Info is what status shows of a mount.
type Info struct {
	Dir       string `json:"dir"`
	Principal string `json:"principal,omitempty"`
	Session   string `json:"session,omitempty"`
	Shared    bool   `json:"shared,omitempty"`
}

// Mount is a live mount.
type Mount struct {
	cfg     Config
	mem     *backend.Memory
	log     hclog.Logger
	view    *backend.View // nil on a shared mount
	procs   procTable
	notify  *notifier
	server  *fuse.Server
	root    *node
	virtual vnode  // .memory
	uid     uint32 // owner shown on a one-principal mount
	gid     uint32
	cancel  []func()
	done    chan struct{}

	mu    sync.Mutex
	nodes map[store.ID]*node // live nodes by memory id, for invalidation
	byIno map[uint64]*node
	views map[uint32]sharedView
}

type sharedView struct {
	view *backend.View
	gen  uint64
}

// forever is the entry and attribute timeout of what only this daemon can change, on a one-principal mount.
const forever = 365 * 24 * time.Hour

// New mounts and returns when the mount answers. It cleans a dead mount of its own kind first, and refuses to mount over
// a live one or over another file system.
func New(ctx context.Context, mem *backend.Memory, cfg Config) (*Mount, error) {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Dir = dir
	m := &Mount{cfg: cfg, mem: mem, log: cfg.Logger.Named("mount").With("dir", dir), done: make(chan struct{}),
		uid: uint32(os.Getuid()), gid: uint32(os.Getgid()), nodes: map[store.ID]*node{}, byIno: map[uint64]*node{},
		views: map[uint32]sharedView{}}
	if !cfg.Shared {
		if m.view, err = mem.View(cfg.Principal, policy.Attested{Mount: dir, UID: m.uid}); err != nil {
			return nil, err
		}
	}
	if err := prepareDir(dir); err != nil {
		return nil, err
	}
	m.root = m.newNode(store.RootID, rootIno, fuse.S_IFDIR)
	m.nodes[store.RootID], m.byIno[rootIno] = m.root, m.root
	m.virtual = m.virtualRoot()
	m.notify = newNotifier(m)
	if m.server, err = m.serve(); err != nil {
		m.notify.close()
		return nil, err
	}
	m.cancel = append(m.cancel, mem.Subscribe(m.notify.batch), mem.OnPolicy(m.policyChanged))
	go m.sweepNodes()
	go func() {
		m.server.Wait()
		for _, c := range m.cancel {
			c()
		}
		m.notify.close()
		close(m.done)
	}()
	return m, nil
}

func (m *Mount) serve() (*fuse.Server, error) {
	opts := &fs.Options{NullPermissions: true, RootStableAttr: &fs.StableAttr{Ino: rootIno}, Logger: m.log.StandardLogger(nil)}
	opts.MountOptions = fuse.MountOptions{
		FsName: FSName, Name: FSName, AllowOther: m.cfg.AllowOther || m.cfg.Shared,
		DirectMount: os.Geteuid() == 0, MaxWrite: 1 << 20, MaxBackground: 64,
		ExtraCapabilities: fuse.CAP_ATOMIC_O_TRUNC | fuse.CAP_DIRECT_IO_ALLOW_MMAP,
		Debug:             m.cfg.Debug, Logger: m.log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Info}),
	}
	if !m.cfg.Shared {
		opts.Options = append(opts.Options, "default_permissions")
	}
	server, err := fs.Mount(m.cfg.Dir, m.root, opts)
	if err != nil {
		return nil, mountError(m.cfg.Dir, err)
	}
	if err := closeOnExec(); err != nil {
		return nil, errors.Join(err, server.Unmount())
	}
	return server, nil
}

// Info describes the mount.
func (m *Mount) Info() Info {
	return Info{Dir: m.cfg.Dir, Principal: m.cfg.Principal, Session: m.cfg.Session, Shared: m.cfg.Shared}
}

// Done is closed when the mount is gone, by Unmount or by somebody's umount(8).
func (m *Mount) Done() <-chan struct{} { return m.done }

// Unmount ends the mount. A busy one is an error, and stays.
func (m *Mount) Unmount(ctx context.Context) error {
	if err := m.server.Unmount(); err != nil {
		return fmt.Errorf("unmount %s: %w (something still uses it: see fuser -vm %s)", m.cfg.Dir, err, m.cfg.Dir)
	}
	select {
	case <-m.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Detach takes the mount out of the tree although it is busy: who uses it keeps a dead view. For the end of a daemon.
func (m *Mount) Detach() error { return detach(m.cfg.Dir) }

// steady is the context of a request without the kernel's INTERRUPT. Any signal to the caller interrupts a request, also
// one that its program never notices (Go's SIGURG comes every 10 ms); to answer EINTR is to fail a rename or to lose the
// bytes of a close, for a store that answers within milliseconds anyway.
func steady(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// errNobody answers a uid that is no principal.
var errNobody = fmt.Errorf("caller %w", backend.ErrUnknown)

// caller says who asks: the mount's principal, or on a shared mount the uid's. A request of the kernel itself (pid 0)
// is a process that is not known, and on a shared mount nobody.
func (m *Mount) caller(ctx context.Context) (*backend.View, backend.Caller, error) {
	fc, ok := fuse.FromContext(ctx)
	if !ok {
		fc = &fuse.Caller{}
	}
	view := m.view
	if m.cfg.Shared {
		var err error
		if view, err = m.sharedView(fc); err != nil {
			return nil, backend.Caller{}, err
		}
	}
	p := m.procs.lookup(fc.Pid)
	name := m.cfg.Session
	if name == "" {
		name = p.session
	}
	c := backend.Caller{Proc: p.proc}
	c.Claimed.Reason, c.Claimed.Conversation = m.cfg.Reason, m.cfg.Conversation
	setFirst(&c.Claimed.Reason, p.reason)
	setFirst(&c.Claimed.Conversation, p.conversation)
	c.Claimed.Session = name
	c.Session = m.mem.Session(view.Principal().ID, name)
	return view, c, nil
}

// sharedView finds the principal of a uid under the registry of now.
func (m *Mount) sharedView(fc *fuse.Caller) (*backend.View, error) {
	if fc.Pid == 0 {
		return nil, errNobody
	}
	gen := m.mem.Policy().Generation()
	m.mu.Lock()
	sv, ok := m.views[fc.Uid]
	m.mu.Unlock()
	if ok && sv.gen == gen {
		return sv.view, nil
	}
	v, err := m.mem.ViewByUID(fc.Uid, policy.Attested{Mount: m.cfg.Dir, Shared: true})
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.views[fc.Uid] = sharedView{v, gen}
	return v, nil
}

// prepareDir makes sure that dir is an empty place to mount on: a directory, no live mount.
func prepareDir(dir string) error {
	if err := CleanDead(dir); err != nil {
		return err
	}
	st, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make the mount point: %w", err)
		}
	case err != nil:
		return fmt.Errorf("mount point: %w", err)
	case !st.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	}
	if kind, ok, err := mountedAt(dir); err != nil {
		return err
	} else if ok {
		return fmt.Errorf("%s %w (%s): unmount it first, or choose another directory", dir, ErrMounted, kind)
	}
	return nil
}
