package audit

import (
	"errors"
	"fmt"
)

// The closed list of errors; wrapped with %w.
var (
	ErrUnavailable = errors.New("the audit log cannot be written")
	ErrDamaged     = errors.New("the audit log is damaged")
	ErrRecord      = errors.New("not an audit record")
	ErrClosed      = errors.New("the audit log is closed")
)

// Damage is an ErrDamaged that names the first bad record.
type Damage struct {
	Seq     uint64 // of the record that should be there
	Segment string // file name
	Offset  int64  // of its line, bytes
	Why     string

	last  bool // in the last segment
	blank bool // the line has NUL bytes: blocks that a crash left unwritten
}

func (d *Damage) Error() string {
	return fmt.Sprintf("%v: record %d (%s, byte %d) %s", ErrDamaged, d.Seq, d.Segment, d.Offset, d.Why)
}

// Unwrap is ErrDamaged.
func (d *Damage) Unwrap() error { return ErrDamaged }
