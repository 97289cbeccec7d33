package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"memoryfs/audit"
	"memoryfs/backend"
	"memoryfs/backend/kv/badgerkv"
	"memoryfs/control"
	"memoryfs/fusefs"
)

// daemon holds the store, the control socket and the mounts.
type daemon struct {
	mem  *backend.Memory
	dir  string
	log  hclog.Logger
	stop context.CancelFunc

	mu     sync.Mutex
	mounts map[string]*fusefs.Mount
	idle   *time.Timer // ends a background daemon some time after its last mount
}

const (
	idleExit    = 2 * time.Second
	memoryLimit = 250 << 20 // bytes; soft: the engine pools its builders, and would keep them (GOMEMLIMIT overrides)
)

func (a *app) serveCmd() *cobra.Command {
	var background bool
	c := &cobra.Command{
		Use:   "serve",
		Short: "Hold the store and serve its mounts and the control socket, in the foreground",
		Long: `Holds the store until SIGINT or SIGTERM, makes the mounts that memoryfs.yaml lists, and answers the control socket.
SIGHUP reloads policy and registry. Use it under a service manager; "memoryfs mount" starts a daemon by itself.`,
		Args: args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if !background {
				return a.serve(c.Context(), nil, nil, false)
			}
			ready := os.NewFile(3, "ready")
			err := a.serve(c.Context(), nil, func() {
				fmt.Fprintln(ready, "ready")
				ready.Close()
			}, true)
			if errors.Is(err, badgerkv.ErrLocked) {
				fmt.Fprintln(ready, heldMark)
			} else if err != nil {
				fmt.Fprintln(ready, strings.ReplaceAll(err.Error(), "\n", "; ")) // nobody reads it once the daemon was ready
			}
			return err
		},
	}
	c.Flags().BoolVar(&background, "background", false, "started by memoryfs mount")
	_ = c.Flags().MarkHidden("background") // the flag is there
	return c
}

// serve runs a daemon until ctx ends. first is a mount to make before it is ready.
func (a *app) serve(ctx context.Context, first *control.MountSpec, ready func(), background bool) error {
	dir, err := a.storeDir()
	if err != nil {
		return err
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "memoryfs", Output: a.err, Level: hclog.Info})
	mem, err := backend.Open(ctx, backend.Config{Dir: dir, Logger: log})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(ctx)
	defer stop()
	d := &daemon{mem: mem, dir: dir, log: log, stop: stop, mounts: map[string]*fusefs.Mount{}}
	err = d.serve(run, first, ready, background)
	d.unmountAll()
	end, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return errors.Join(err, mem.Close(end))
}

func (d *daemon) serve(ctx context.Context, first *control.MountSpec, ready func(), background bool) error {
	l, err := control.Listen(d.dir)
	if err != nil {
		return err
	}
	defer os.Remove(filepath.Join(d.dir, control.SocketName))
	handler := control.New(d.mem, d, d.log)
	specs := configured(d.mem.Settings())
	if first != nil {
		specs = append(specs, *first)
	}
	for _, s := range specs { // as any caller of this uid would: policy says whether
		if err := control.InProcess(handler).Call(ctx, "mount", s, nil); err != nil {
			return errors.Join(err, l.Close())
		}
	}
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() { d.watchPolicy(ctx) })
	if background {
		d.mu.Lock()
		d.idle = time.AfterFunc(startTimeout, d.stop)
		d.mu.Unlock()
	}
	if ready != nil {
		ready()
	}
	d.log.Info("serving", "store", d.dir, "mounts", len(specs))
	return control.Serve(ctx, l, handler)
}

func configured(s backend.Settings) []control.MountSpec {
	var specs []control.MountSpec
	for _, m := range s.Mounts {
		specs = append(specs, control.MountSpec{Who: control.Who{As: m.As, Session: m.Session}, Dir: control.Path(m.Dir), Shared: m.Shared, AllowOther: m.AllowOther})
	}
	return specs
}

// Mount makes a mount. It stays until Unmount, or until somebody unmounts it.
func (d *daemon) Mount(ctx context.Context, s control.MountSpec) error {
	dir := string(s.Dir)
	if err := d.apart(dir); err != nil {
		return err
	}
	if dead, err := fusefs.IsDead(dir); err == nil && dead {
		d.log.Warn("cleaning a dead mount", "dir", dir)
	}
	m, err := fusefs.New(ctx, d.mem, fusefs.Config{Dir: dir, Principal: s.As, Session: s.Session, Reason: s.Reason,
		Conversation: s.Conversation, Shared: s.Shared, AllowOther: s.AllowOther, Logger: d.log, Debug: os.Getenv("MEMORYFS_TRACE") != ""})
	if errors.Is(err, fusefs.ErrMounted) {
		return fmt.Errorf("%w: %w", control.ErrTaken, err)
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mounts[m.Info().Dir] = m
	if d.idle != nil {
		d.idle.Stop()
	}
	go d.await(m)
	return nil
}

// await forgets a mount that is gone, and lets a background daemon end after the last one.
func (d *daemon) await(m *fusefs.Mount) {
	<-m.Done()
	d.mu.Lock()
	defer d.mu.Unlock()
	info := m.Info()
	if d.mounts[info.Dir] == m {
		delete(d.mounts, info.Dir)
	}
	d.log.Info("unmounted", "dir", info.Dir)
	d.mem.Audit().Refuse(audit.Record{Time: time.Now(), Kind: "unmount", Op: "unmount", Mount: audit.Quote(info.Dir),
		Principal: info.Principal, Session: info.Session})
	if d.idle != nil && len(d.mounts) == 0 {
		d.idle.Reset(idleExit)
	}
}

// Unmount takes a mount away, and waits until it is gone.
func (d *daemon) Unmount(ctx context.Context, dir string) error {
	d.mu.Lock()
	m := d.mounts[dir]
	d.mu.Unlock()
	if m == nil {
		return fmt.Errorf("%s: %w", dir, backend.ErrNotExist)
	}
	return m.Unmount(ctx)
}

// Mounts lists them, by directory.
func (d *daemon) Mounts() []control.MountInfo {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]control.MountInfo, 0, len(d.mounts))
	for _, m := range d.mounts {
		i := m.Info()
		out = append(out, control.MountInfo{Dir: control.Path(i.Dir), Principal: i.Principal, Session: i.Session, Shared: i.Shared})
	}
	slices.SortFunc(out, func(a, b control.MountInfo) int { return strings.Compare(string(a.Dir), string(b.Dir)) })
	return out
}

// Stop ends the daemon.
func (d *daemon) Stop() { d.stop() }

// unmountAll: a busy mount is detached, so that nothing waits for ever; who still uses it gets ENOTCONN.
func (d *daemon) unmountAll() {
	d.mu.Lock()
	all := make([]*fusefs.Mount, 0, len(d.mounts))
	for _, m := range d.mounts {
		all = append(all, m)
	}
	d.mu.Unlock()
	for _, m := range all {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		if err := m.Unmount(ctx); err != nil {
			d.log.Warn("the mount is busy and is detached", "error", err)
			if err := m.Detach(); err != nil {
				d.log.Error("the mount cannot be detached", "error", err)
			}
		}
		cancel()
	}
}

// apart refuses a mount point that would have the daemon read its own mount: the store in it, it in the store, or it in
// another mount of this daemon.
func (d *daemon) apart(mountDir string) error {
	for _, m := range d.Mounts() {
		if strings.HasPrefix(mountDir, string(m.Dir)+"/") {
			return fmt.Errorf("%s lies in the mount %s: choose another directory", mountDir, m.Dir)
		}
	}
	storeDir, err := filepath.EvalSymlinks(d.dir)
	if err != nil {
		return err
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(mountDir)); err == nil {
		mountDir = filepath.Join(dir, filepath.Base(mountDir))
	}
	for _, pair := range [][2]string{{storeDir, mountDir}, {mountDir, storeDir}} {
		rel, err := filepath.Rel(pair[0], pair[1])
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return fmt.Errorf("the mount point %s and the store %s lie in one another: choose another directory", mountDir, storeDir)
		}
	}
	return nil
}

// watchPolicy reloads when a file of the policy or the registry changes, looking every second, and on SIGHUP.
func (d *daemon) watchPolicy(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	seen := d.policyState()
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		case <-tick.C:
			now := d.policyState()
			if now == seen {
				continue
			}
			seen = now
		}
		_ = d.mem.Policy().Reload(ctx) // the engine has logged why not, and status shows it
	}
}

// policyState changes when a file does: names, sizes and times.
func (d *daemon) policyState() string {
	var b strings.Builder
	files, _ := filepath.Glob(filepath.Join(d.dir, backend.PolicyDir, "*.rego"))
	for _, f := range append(files, filepath.Join(d.dir, backend.RegistryFile)) {
		if st, err := os.Stat(f); err == nil {
			fmt.Fprintln(&b, f, st.Size(), st.ModTime().UnixNano())
		}
	}
	return b.String()
}
