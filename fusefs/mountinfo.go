package fusefs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrMounted: something is mounted there already.
var ErrMounted = errors.New("is a mount point already")

// mountedAt tells what is mounted exactly at dir, by /proc/self/mountinfo (proc(5)): asking the path itself would hang
// on a stuck mount. The topmost one counts.
func mountedAt(dir string) (kind string, ok bool, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", false, err
	}
	if real, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
		dir = filepath.Join(real, filepath.Base(dir))
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", false, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 7 || unescape(fields[4]) != dir {
			continue
		}
		for i, field := range fields {
			if field == "-" && i+1 < len(fields) {
				kind, ok = fields[i+1], true
			}
		}
	}
	return kind, ok, nil
}

// unescape undoes the octal escapes of mountinfo: space, tab, newline, backslash.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// IsDead tells whether dir is a memoryfs mount whose daemon is gone (kill -9): the kernel answers ENOTCONN for it.
func IsDead(dir string) (bool, error) {
	kind, ok, err := mountedAt(dir)
	if err != nil || !ok || kind != "fuse."+FSName {
		return false, err
	}
	var st unix.Statfs_t // stat(2) of the root may be answered from the kernel's cache
	return errors.Is(unix.Statfs(dir, &st), unix.ENOTCONN), nil
}

// CleanDead takes a dead memoryfs mount away, and nothing else. A process whose cwd is inside keeps its dead view.
func CleanDead(dir string) error {
	for range 16 { // mounts may be stacked
		dead, err := IsDead(dir)
		if err != nil || !dead {
			return err
		}
		if err := detach(dir); err != nil {
			return fmt.Errorf("%s is a dead mount and cannot be taken away: %w", dir, err)
		}
	}
	return fmt.Errorf("%s: too many dead mounts on one another", dir)
}

// detach unmounts lazily: as root by itself, as a user through fusermount3.
func detach(dir string) error {
	err := unix.Unmount(dir, unix.MNT_DETACH)
	if err == nil || os.Geteuid() == 0 {
		return err
	}
	cmd := exec.Command("fusermount3", "-u", "-z", "--", dir)
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fusermount3: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// mountError says in one line what a failed mount needs.
func mountError(dir string, err error) error {
	if f, openErr := os.OpenFile("/dev/fuse", os.O_RDWR, 0); openErr != nil {
		switch {
		case errors.Is(openErr, os.ErrNotExist):
			return fmt.Errorf("mount %s: there is no /dev/fuse: load the fuse module (modprobe fuse), or give the container --device /dev/fuse", dir)
		case errors.Is(openErr, os.ErrPermission):
			return fmt.Errorf("mount %s: /dev/fuse may not be opened: as root, chmod 666 /dev/fuse", dir)
		}
	} else {
		f.Close()
	}
	if os.Geteuid() != 0 {
		if _, lookErr := exec.LookPath("fusermount3"); lookErr != nil {
			return fmt.Errorf("mount %s: fusermount3 is not in PATH: install fuse3 (apt-get install fuse3)", dir)
		}
	}
	return fmt.Errorf("mount %s: %w", dir, err)
}
