package scenario_test

import (
	"strings"
	"testing"
)

// TestChildrenDoNotInheritTheDevice: what the daemon starts has no part in the mount.
func TestChildrenDoNotInheritTheDevice(t *testing.T) {
	w := newWorld(t)
	w.mount("agent-104")
	if r := run(t, nil, "bash", "-c", "ls -l /proc/$$/fd"); strings.Contains(r.out, "/dev/fuse") {
		t.Fatal(r.out)
	}
}
