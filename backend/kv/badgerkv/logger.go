package badgerkv

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
)

// logger hands Badger's lines to hclog, one level lower than Badger thinks of itself: its "info" is a compaction.
type logger struct {
	hclog.Logger
	damaged atomic.Bool // Badger left out a table at Open, and says so only here
}

func (l *logger) Errorf(f string, a ...any) {
	line := text(f, a)
	if strings.HasPrefix(line, "Ignoring table") {
		l.damaged.Store(true)
	}
	l.Error(line)
}
func (l *logger) Warningf(f string, a ...any) { l.Warn(text(f, a)) }

func (l *logger) Infof(f string, a ...any) {
	if l.IsDebug() {
		l.Debug(text(f, a))
	}
}

func (l *logger) Debugf(f string, a ...any) {
	if l.IsTrace() {
		l.Trace(text(f, a))
	}
}

func text(f string, a []any) string { return strings.TrimSpace(fmt.Sprintf(f, a...)) }
