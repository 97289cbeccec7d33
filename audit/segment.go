package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const segmentExt = ".jsonl"

// segmentName is the file name of the segment whose first line has this sequence.
func segmentName(first uint64) string { return fmt.Sprintf("%020d%s", first, segmentExt) }

// segments lists the first sequence numbers of the segments in dir, ascending. A directory that is not there has none.
func segments(dir string) ([]uint64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []uint64
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), segmentExt)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(name, 10, 64)
		if err != nil || segmentName(n) != e.Name() || n == 0 {
			return nil, fmt.Errorf("%w: %s is no segment", ErrDamaged, e.Name())
		}
		out = append(out, n)
	}
	slices.Sort(out)
	return out, nil
}

// makeDir makes the log's directory, durably, and closes it to others.
func makeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if st.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(dir))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// lockDir makes sure that one process writes. The lock ends with the file, or the process.
func lockDir(dir string) (*os.File, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(d.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("%w: another process writes it", ErrUnavailable)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}
