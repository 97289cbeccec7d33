package backend

import (
	"errors"
	"time"
)

// The closed list of errors of a View. fusefs maps each to one errno (fusefs/errno.go), the command to one exit code.
// Every error of a View is one of these, wrapped, or a context error; anything else is ErrInternal.
var (
	ErrNotExist    = errors.New("does not exist")                             // or policy hides it
	ErrDenied      = errors.New("policy refuses")                             // and the name may be known
	ErrStale       = errors.New("somebody changed it since it was last read") // EAGAIN
	ErrExist       = errors.New("already exists")
	ErrNotEmpty    = errors.New("directory is not empty")
	ErrIsDir       = errors.New("is a directory")
	ErrNotDir      = errors.New("is not a directory")
	ErrInvalid     = errors.New("cannot be honoured")
	ErrInvalidName = errors.New("name is not allowed")
	ErrNameTooLong = errors.New("name is longer than 255 bytes")
	ErrTooLarge    = errors.New("is over the size limit")
	ErrNoSpace     = errors.New("the store's free-space reserve is reached")
	ErrReadOnly    = errors.New("is read-only")
	ErrPermission  = errors.New("is not offered by this file system") // hard links, device nodes, symlinks that leave
	ErrNoXattr     = errors.New("no such attribute")
	ErrXattrLarge  = errors.New("attributes are over the size limit")
	ErrUnsupported = errors.New("is not supported")
	ErrNoRecord    = errors.New("the audit record cannot be written, so nothing is changed")
	ErrInternal    = errors.New("internal fault")
	ErrUnknown     = errors.New("is not a known principal")
)

// Refusal is the error of an operation that policy or the stale check refused: what .memory/errors and the audit log
// show. It unwraps to ErrDenied, ErrStale, ErrNotExist or ErrTooLarge.
type Refusal struct {
	Time     time.Time `json:"time"`
	Op       string    `json:"op"`
	Path     string    `json:"path"`
	Errno    string    `json:"errno"`
	Rules    []string  `json:"rules"`
	Decision string    `json:"decision"`
	Cause    string    `json:"cause,omitempty"`
	Conflict string    `json:"conflict,omitempty"` // where the bytes of a stale write are kept: .memory/conflicts/…
	Hint     string    `json:"hint"`               // what to do next
	Err      error     `json:"-"`
}

// Error names the operation, the path, what happened and what to do.
func (r *Refusal) Error() string {
	s := r.Op + " " + r.Path + ": " + r.Err.Error()
	if r.Cause != "" {
		s += " (" + r.Cause + ")"
	}
	if r.Hint != "" {
		s += "; " + r.Hint
	}
	return s
}

// Unwrap returns the sentinel.
func (r *Refusal) Unwrap() error { return r.Err }
