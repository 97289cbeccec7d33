package fusefs

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// closeOnExec keeps /dev/fuse from our children: go-fuse v2.12.1 opens it without O_CLOEXEC for a direct mount. A child
// that has it could answer requests, and after a kill -9 of the daemon the mount would hang, instead of ENOTCONN, as long
// as the child lives.
func closeOnExec() error {
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("look for /dev/fuse: %w", err)
	}
	for _, fd := range fds {
		n, err := strconv.Atoi(fd.Name())
		if err != nil {
			continue
		}
		if target, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); err == nil && target == "/dev/fuse" {
			unix.CloseOnExec(n)
		}
	}
	return nil
}
