package backend

import (
	"context"
	"errors"
	"fmt"

	"memoryfs/backend/kv"
	"memoryfs/backend/store"
)

// sentinels maps what the rooms below can answer to this package's closed list. Anything else is ErrInternal.
var sentinels = []struct{ below, above error }{
	{store.ErrNotExist, ErrNotExist},
	{store.ErrExist, ErrExist},
	{store.ErrStale, ErrStale},
	{store.ErrNotEmpty, ErrNotEmpty},
	{store.ErrIsDir, ErrIsDir},
	{store.ErrNotDir, ErrNotDir},
	{store.ErrLoop, ErrInvalid},
	{store.ErrTooLarge, ErrTooLarge},
	{store.ErrNoXattr, ErrNoXattr},
	{store.ErrXattrLarge, ErrXattrLarge},
	{store.ErrInvalidName, ErrInvalidName},
	{kv.ErrNoSpace, ErrNoSpace},
	{kv.ErrTooLarge, ErrTooLarge},
}

// wrap turns an error of the store into one of this package, naming the path. Context errors stay what they are.
func wrap(err error, path string) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, s := range sentinels {
		if errors.Is(err, s.below) {
			return fmt.Errorf("%s: %w", path, s.above)
		}
	}
	return fmt.Errorf("%s: %w: %w", path, ErrInternal, err)
}

const maxName = 255 // bytes of one name, NAME_MAX

func checkName(name string) error {
	switch {
	case len(name) > maxName:
		return ErrNameTooLong
	case name == "" || name == "." || name == "..":
		return fmt.Errorf("%q: %w", name, ErrInvalidName)
	}
	for i := range len(name) {
		if name[i] == '/' || name[i] == 0 {
			return fmt.Errorf("%q: %w", name, ErrInvalidName)
		}
	}
	return nil
}
