package store

import "errors"

// The closed list of errors of this package; wrapped with %w and the noun, compared with errors.Is. Errors of kv
// (ErrNoSpace, ErrUnavailable, …) are wrapped through unchanged.
var (
	ErrNotExist    = errors.New("store: does not exist")
	ErrExist       = errors.New("store: already exists")
	ErrStale       = errors.New("store: the head is not the base of this write")
	ErrNotEmpty    = errors.New("store: directory is not empty")
	ErrIsDir       = errors.New("store: is a directory")
	ErrNotDir      = errors.New("store: is not a directory")
	ErrLoop        = errors.New("store: a directory cannot move below itself")
	ErrTooLarge    = errors.New("store: content is over the size limit")
	ErrNoXattr     = errors.New("store: no such attribute")
	ErrXattrLarge  = errors.New("store: attributes are over the size limit")
	ErrInvalidName = errors.New("store: invalid name")
	ErrCorrupt     = errors.New("store: stored data does not match its hash")
	ErrFormat      = errors.New("store: unknown on-disk format")
)
