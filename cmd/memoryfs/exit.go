package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"memoryfs/backend/kv/badgerkv"
	"memoryfs/control"
)

// The exit codes, after sysexits.h where it has one. A closed list: docs/command.md.
const (
	exitOK          = 0
	exitFound       = 1  // verify, fsck or policy test found something wrong
	exitUsage       = 64 // EX_USAGE
	exitData        = 65 // EX_DATAERR: a name, a size or a type that cannot be
	exitNotFound    = 66 // EX_NOINPUT: not there, or not for you to know
	exitNoUser      = 67 // EX_NOUSER: the registry does not know the caller
	exitUnavailable = 69 // EX_UNAVAILABLE: the store is held, the daemon does not answer, the mount cannot be made
	exitInternal    = 70 // EX_SOFTWARE
	exitExists      = 73 // EX_CANTCREAT: it is there already, or something is mounted there
	exitIO          = 74 // EX_IOERR: no space, or the record cannot be written
	exitStale       = 75 // EX_TEMPFAIL: somebody changed it; read again
	exitDenied      = 77 // EX_NOPERM: policy refuses
	exitConfig      = 78 // EX_CONFIG: policy, registry or settings are refused
)

// exitCodes has every kind of control.Problem.
var exitCodes = map[string]int{
	"stale": exitStale, "denied": exitDenied, "read_only": exitDenied, "not_found": exitNotFound, "unknown_principal": exitNoUser,
	"exists": exitExists, "not_empty": exitExists, "is_directory": exitData, "not_directory": exitData, "invalid": exitData,
	"too_large": exitData, "no_space": exitIO, "no_record": exitIO, "config": exitConfig, "mount": exitUnavailable,
	"cancelled": exitUnavailable, "internal": exitInternal,
}

// errFound is the end of a check that found problems: they are printed already.
var errFound = errors.New("problems were found")

// errConfig wraps what is wrong with the store itself: not there, or not ours.
var errConfig = errors.New("no usable store")

// errUsage wraps what is wrong with the words of a command.
var errUsage = errors.New("usage")

// report prints an error as one line, or as JSON, and says which code to exit with.
func report(w io.Writer, err error, asJSON bool) int {
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errFound) {
		return exitFound
	}
	p, code := classify(err)
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(p) // nowhere to say that stderr is broken
		return code
	}
	fmt.Fprintln(w, "memoryfs:", strings.Join(strings.Fields(strings.ReplaceAll(p.Title, "\n", "; ")), " "))
	return code
}

func classify(err error) (*control.Problem, int) {
	var p *control.Problem
	if !errors.As(err, &p) {
		p, _ = control.AsProblem(err)
	}
	for _, own := range []struct {
		err  error
		kind string
		code int
	}{{errUsage, "usage", exitUsage}, {errConfig, "config", exitConfig}, {badgerkv.ErrLocked, "unavailable", exitUnavailable},
		{control.ErrNoDaemon, "unavailable", exitUnavailable}, {errDaemon, "unavailable", exitUnavailable}} {
		if errors.Is(err, own.err) {
			p.Kind = own.kind
			return p, own.code
		}
	}
	if code, ok := exitCodes[p.Kind]; ok {
		return p, code
	}
	return p, exitInternal
}
