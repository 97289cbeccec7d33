package policy

import "errors"

// The closed list of errors of a load; wrapped with %w and the file and line.
var (
	ErrNoPolicy  = errors.New("there is no policy")
	ErrPolicy    = errors.New("the policy is refused")
	ErrRegistry  = errors.New("the registry is refused")
	ErrTestsFail = errors.New("the policy's own tests fail")
)
