package badgerkv

import (
	"errors"
	"os"
	"path/filepath"
)

// removeUnborn removes log files of no bytes. A kill between their creation and their first truncate leaves them, nothing
// is in them, and Badger v4.9.6 refuses to open beside one for ever ("Open existing file … Create a new file": its
// logFile.open hands the "new file" mark on as an error). Found by the kill -9 test.
func removeUnborn(dir string) error {
	if dir == "" {
		return nil
	}
	for _, pattern := range []string{"*.vlog", "*.mem"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			st, err := os.Stat(f)
			if err != nil {
				return err
			}
			if st.Size() == 0 {
				if err := os.Remove(f); err != nil && !errors.Is(err, os.ErrNotExist) {
					return err
				}
			}
		}
	}
	return nil
}
