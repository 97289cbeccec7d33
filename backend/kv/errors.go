package kv

import "errors"

// The closed list of errors of an engine; each is wrapped with %w and compared with errors.Is.
var (
	ErrConflict    = errors.New("kv: a guard does not hold")
	ErrTooLarge    = errors.New("kv: commit is too large")
	ErrNoSpace     = errors.New("kv: the free-space reserve is reached")
	ErrInvalid     = errors.New("kv: invalid request")
	ErrUnavailable = errors.New("kv: engine is unavailable, nothing was sent")
	ErrAmbiguous   = errors.New("kv: commit may or may not have happened")
	ErrCompacted   = errors.New("kv: revision is compacted")
	ErrSlow        = errors.New("kv: watcher fell behind and was cut off")
	ErrClosed      = errors.New("kv: closed")
	ErrCorrupt     = errors.New("kv: stored data is damaged")
)
