package badgerkv

import (
	"fmt"

	"memoryfs/backend/kv"
)

// Verify reads every table and checks every block, for fsck: kv.ErrCorrupt if one is damaged. It is needed because
// Badger takes a block that it cannot read for one without the key: a damaged key reads as absent, not as an error.
// It takes about a second a gigabyte, and Close waits for it.
func (s *Store) Verify() error {
	return s.use(func() (err error) {
		defer func() { // Badger's VerifyChecksum uses the block that it could not read (v4.9.6, table.go)
			if r := recover(); r != nil {
				err = fmt.Errorf("verify: %w: %v", kv.ErrCorrupt, r)
			}
		}()
		if err := s.db.VerifyChecksum(); err != nil {
			return fmt.Errorf("verify: %w: %w", kv.ErrCorrupt, err)
		}
		return nil
	})
}
