package control

import (
	"context"
	"errors"
	"net/http"

	"memoryfs/backend"
	"memoryfs/policy"
)

// Problem is an error as it crosses the socket. Kind is of a closed list, shared with the command's exit codes.
type Problem struct {
	Kind     string   `json:"kind"`
	Title    string   `json:"title"`
	Path     Path     `json:"path,omitempty"`
	Errno    string   `json:"errno,omitempty"`
	Rules    []string `json:"rules,omitempty"`
	Decision string   `json:"decision,omitempty"`
	Cause    string   `json:"cause,omitempty"`
	Hint     string   `json:"hint,omitempty"`
}

func (p *Problem) Error() string { return p.Title }

// kinds maps the sentinels to kinds and HTTP statuses; the first that an error wraps decides.
var kinds = []struct {
	err    error
	kind   string
	status int
}{
	{ErrTaken, "exists", http.StatusConflict},
	{backend.ErrStale, "stale", http.StatusPreconditionFailed},
	{backend.ErrDenied, "denied", http.StatusForbidden},
	{backend.ErrNotExist, "not_found", http.StatusNotFound},
	{backend.ErrUnknown, "unknown_principal", http.StatusForbidden},
	{backend.ErrExist, "exists", http.StatusConflict},
	{backend.ErrNotEmpty, "not_empty", http.StatusConflict},
	{backend.ErrIsDir, "is_directory", http.StatusConflict},
	{backend.ErrNotDir, "not_directory", http.StatusConflict},
	{backend.ErrInvalid, "invalid", http.StatusBadRequest},
	{backend.ErrInvalidName, "invalid", http.StatusBadRequest},
	{backend.ErrNameTooLong, "invalid", http.StatusBadRequest},
	{backend.ErrPermission, "denied", http.StatusForbidden},
	{backend.ErrTooLarge, "too_large", http.StatusRequestEntityTooLarge},
	{backend.ErrNoSpace, "no_space", http.StatusInsufficientStorage},
	{backend.ErrReadOnly, "read_only", http.StatusForbidden},
	{backend.ErrNoRecord, "no_record", http.StatusServiceUnavailable},
	{policy.ErrNoPolicy, "config", http.StatusUnprocessableEntity},
	{policy.ErrPolicy, "config", http.StatusUnprocessableEntity},
	{policy.ErrRegistry, "config", http.StatusUnprocessableEntity},
	{policy.ErrTestsFail, "config", http.StatusUnprocessableEntity},
	{errMount, "mount", http.StatusConflict},
	{errBadRequest, "invalid", http.StatusBadRequest},
	{context.Canceled, "cancelled", http.StatusServiceUnavailable},
	{context.DeadlineExceeded, "cancelled", http.StatusServiceUnavailable},
}

// ErrTaken is for a Mounter to say that something is mounted there already.
var ErrTaken = errors.New("taken")

// errMount wraps what a Mounter answers: it is for people to read.
var errMount = errors.New("cannot be mounted")

var errBadRequest = errors.New("bad request")

// Kinds lists every kind, "internal" last.
func Kinds() []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.kind)
	}
	return append(out, "internal")
}

// AsProblem renders an error and its HTTP status; also for errors that crossed no socket, as those of opening a store.
func AsProblem(err error) (*Problem, int) {
	p, status := &Problem{Kind: "internal", Title: err.Error()}, http.StatusInternalServerError
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			p.Kind, status = k.kind, k.status
			break
		}
	}
	var r *backend.Refusal
	if errors.As(err, &r) {
		p.Path, p.Errno, p.Rules, p.Decision, p.Cause, p.Hint = Path(r.Path), r.Errno, r.Rules, r.Decision, r.Cause, r.Hint
	}
	return p, status
}
