package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"golang.org/x/sys/unix"

	"memoryfs/backend"
	"memoryfs/backend/kv/badgerkv"
	"memoryfs/control"
	"memoryfs/fusefs"
)

// errDaemon: the daemon did not start.
var errDaemon = errors.New("the daemon did not start")

// connect calls fn with the store's daemon, or with the store opened in this process when none runs. Another command
// may hold the store for a moment: it is waited for.
func (a *app) connect(ctx context.Context, fn func(*control.Client) error) error {
	dir, err := a.storeDir()
	if err != nil {
		return err
	}
	deadline := time.Now().Add(5 * time.Second)
	for {
		c, err := control.Dial(dir)
		if err == nil {
			return fn(c)
		}
		if !errors.Is(err, control.ErrNoDaemon) {
			if errors.Is(err, os.ErrNotExist) {
				return noStore(dir)
			}
			return err
		}
		if err := ours(dir); err != nil {
			return err
		}
		log := hclog.New(&hclog.LoggerOptions{Name: "memoryfs", Output: a.err, Level: hclog.Error})
		mem, err := backend.Open(ctx, backend.Config{Dir: dir, Logger: log})
		if errors.Is(err, badgerkv.ErrLocked) && time.Now().Before(deadline) {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		if errors.Is(err, os.ErrNotExist) {
			return noStore(dir)
		}
		if err != nil {
			return err
		}
		return errors.Join(fn(control.InProcess(control.New(mem, nil, log))), mem.Close(ctx))
	}
}

func noStore(dir string) error {
	return fmt.Errorf("%w in %s: make one with memoryfs init, or name it with --store", errConfig, dir)
}

// ours refuses the store of another user: root would leave files in it that its owner cannot use.
func ours(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return nil // said better elsewhere
	}
	if s, ok := st.Sys().(*syscall.Stat_t); ok && int(s.Uid) != os.Geteuid() {
		return fmt.Errorf("%w: %s belongs to uid %d: run this as that user", errConfig, dir, s.Uid)
	}
	return nil
}

// call is connect for one call.
func (a *app) call(ctx context.Context, name string, in, out any) error {
	return a.connect(ctx, func(c *control.Client) error { return c.Call(ctx, name, in, out) })
}

const (
	startTimeout = 10 * time.Second
	maxLog       = 10 << 20 // bytes of daemon.log; then it becomes daemon.log.old
)

// daemon returns a client of the store's daemon, starting it if none runs.
func (a *app) daemon(ctx context.Context) (*control.Client, error) {
	dir, err := a.storeDir()
	if err != nil {
		return nil, err
	}
	if c, err := control.Dial(dir); err == nil || !errors.Is(err, control.ErrNoDaemon) {
		if errors.Is(err, os.ErrNotExist) {
			return nil, noStore(dir)
		}
		return c, err
	}
	if _, err := os.Stat(filepath.Join(dir, backend.DataDir)); err != nil {
		return nil, noStore(dir)
	}
	if err := ours(dir); err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(20 * time.Millisecond) {
		err := startDaemon(dir)
		if err != nil && (!errors.Is(err, badgerkv.ErrLocked) || time.Now().After(deadline)) {
			return nil, err
		}
		// Another mount may have started it, or another command holds the store for a moment.
		if c, err := control.Dial(dir); err == nil {
			return c, nil
		}
	}
}

// startDaemon runs this program again, apart from the terminal and from every directory, and waits until it says that
// it is ready, or why not. Both are told through a pipe: a line of text, or its end.
func startDaemon(dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	logName := filepath.Join(dir, "daemon.log")
	if st, err := os.Stat(logName); err == nil && st.Size() > maxLog {
		if err := os.Rename(logName, logName+".old"); err != nil {
			return fmt.Errorf("%w: %w", errDaemon, err)
		}
	}
	logFile, err := os.OpenFile(logName, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("%w: %w", errDaemon, err)
	}
	defer logFile.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(self, "serve", "--store", dir, "--background")
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = logFile, logFile, []*os.File{w}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	// Descriptors that our caller left open are not for a daemon: a lock would be held, a pipe never end.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("%w: %w", errDaemon, err)
	}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return fmt.Errorf("%w: %w", errDaemon, err)
	}
	if err := r.SetReadDeadline(time.Now().Add(startTimeout)); err != nil {
		return err
	}
	said, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("%w within %s; see %s", errDaemon, startTimeout, logFile.Name())
	}
	if why := strings.TrimSpace(string(said)); why != "ready" {
		if why == heldMark {
			return fmt.Errorf("%w: %w", errDaemon, badgerkv.ErrLocked)
		}
		if why == "" {
			why = "see " + logFile.Name()
		}
		return fmt.Errorf("%w: %s", errDaemon, why)
	}
	return cmd.Process.Release()
}

// heldMark is what a daemon says that finds the store held.
const heldMark = "held"

// path turns a word of the command line into a path of the memory: one that leads into a live mount of this store
// (relative or absolute), or the memory's own path. The mount is not touched.
func (a *app) path(ctx context.Context, c *control.Client, word string) (control.Path, error) {
	abs := word
	if !filepath.IsAbs(word) {
		cwd, err := unix.Getwd() // the physical one, as mounts are known by
		if err != nil {
			return "", err
		}
		abs = filepath.Join(cwd, word)
	}
	var s control.StatusReply
	if err := c.Call(ctx, "status", control.Who{}, &s); err != nil {
		return "", err
	}
	real := abs
	if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
		real = filepath.Join(dir, filepath.Base(abs))
	}
	for _, m := range s.Mounts {
		for _, p := range []string{filepath.Clean(abs), real} {
			if p == string(m.Dir) {
				return "", nil
			}
			if rest, ok := strings.CutPrefix(p, string(m.Dir)+"/"); ok {
				return control.Path(rest), nil
			}
		}
	}
	if filepath.IsAbs(word) && filepath.Clean(word) != "/" {
		return "", fmt.Errorf("%w: %s is on no mount of this store (a path of the memory itself has no leading /)", errUsage, word)
	}
	return control.Path(strings.Trim(word, "/")), nil
}

// pathCall is a call on one path.
func (a *app) pathCall(ctx context.Context, name, word string, in control.PathCall, out any) error {
	return a.connect(ctx, func(c *control.Client) error {
		p, err := a.path(ctx, c, word)
		if err != nil {
			return err
		}
		in.Who, in.Path = a.who, p
		return c.Call(ctx, name, in, out)
	})
}

// defaultSession is what a mount would take this process's session for, so that commands and files of one terminal are
// one session.
func defaultSession() string {
	if s := os.Getenv("MEMORYFS_SESSION"); s != "" {
		return s
	}
	return fusefs.SessionOf(os.Getpid())
}
