package audit

import "errors"

// The closed list of errors; wrapped with %w.
var (
	ErrUnavailable = errors.New("the audit log cannot be written")
	ErrDamaged     = errors.New("the audit log is damaged")
	ErrRecord      = errors.New("not an audit record")
	ErrClosed      = errors.New("the audit log is closed")
)
