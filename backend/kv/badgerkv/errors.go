package badgerkv

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/y"

	"memoryfs/backend/kv"
)

// ErrLocked: another process holds the store.
var ErrLocked = errors.New("the store is held by another process")

// errDecode is the text of Badger's error for a block that cannot be decompressed.
var errDecode = errors.New("failed to decode compressed data")

// translate gives an error of Badger back a cause that errors.Is finds. y.Wrap formats what it wraps and drops the
// chain, so where the chain is gone the text of the few causes that matter is looked for; this is the only place that
// does so. What is not recognised stays as it is, and the caller decides what it means (a write: ErrAmbiguous).
func translate(err error) error {
	if err == nil {
		return nil
	}
	for _, k := range []struct{ from, to error }{
		{y.ErrChecksumMismatch, kv.ErrCorrupt},
		{errDecode, kv.ErrCorrupt},
		{syscall.ENOSPC, kv.ErrNoSpace},
		{syscall.EDQUOT, kv.ErrNoSpace},
		{badger.ErrTxnTooBig, kv.ErrTooLarge},
		{badger.ErrDBClosed, kv.ErrClosed},
	} {
		if errors.Is(err, k.to) {
			return err
		}
		if errors.Is(err, k.from) || strings.Contains(err.Error(), k.from.Error()) {
			return fmt.Errorf("%w: %w", k.to, err)
		}
	}
	return err
}

// translateOpen is translate for Open, where Badger's own directory lock may be the cause.
func translateOpen(err error) error {
	if err != nil && strings.Contains(err.Error(), "Cannot acquire directory lock") {
		return fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return translate(err)
}

// unsent says why a commit was surely not sent.
func unsent(cause error) error { return fmt.Errorf("%w: %w", kv.ErrUnavailable, cause) }
