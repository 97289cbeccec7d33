package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// SocketName is the control socket in the store directory.
const SocketName = "control.sock"

// short is a path to the socket that fits sockaddr_un (108 bytes), however long the store's is: through a descriptor of
// its directory. Call done when the socket is bound or connected.
func short(storeDir string) (path string, done func() error, err error) {
	d, err := os.Open(storeDir)
	if err != nil {
		return "", nil, err
	}
	return filepath.Join("/proc/self/fd", strconv.Itoa(int(d.Fd())), SocketName), d.Close, nil
}

// Listen binds the socket, mode 0600. A file that a dead daemon left is replaced: the caller holds the store's lock.
func Listen(storeDir string) (net.Listener, error) {
	path, done, err := short(storeDir)
	if err != nil {
		return nil, err
	}
	defer done()
	real := filepath.Join(storeDir, SocketName)
	if err := os.Remove(real); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l.SetUnlinkOnClose(false) // its name leads through a descriptor that is closed by then
	return l, os.Chmod(real, 0o600)
}

// Serve answers on l until ctx ends.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 2 * time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			uid, err := peerUID(c)
			if err != nil {
				return ctx // nobody
			}
			return WithPeer(ctx, uid)
		}}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		end, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = s.Shutdown(end) // what is still running then is cut off
		_ = s.Close()
	})
	err := s.Serve(l)
	if !stop() {
		<-ended
	}
	if !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func peerUID(c net.Conn) (uint32, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, errors.New("no unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return cred.Uid, nil
}
