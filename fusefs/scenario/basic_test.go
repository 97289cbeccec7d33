package scenario_test

import (
	"strings"
	"testing"
)

// TestMainJob is the README: list, search, read, append, edit, look back.
func TestMainJob(t *testing.T) {
	w := newWorld(t)
	m := w.mount("agent-104")
	out := ok(t, m, "ls -R $M")
	for _, want := range []string{"organization", "principles.md", "scratchpad.md"} {
		if !strings.Contains(out, want) {
			t.Errorf("ls -R does not show %s: %s", want, out)
		}
	}
	if strings.Contains(out, "escalation") || strings.Contains(out, "support") {
		t.Errorf("ls -R shows what is hidden: %s", out)
	}
	equal(t, ok(t, m, "grep -rn approval $M"), m+"/organization/principles.md:3:Every rule needs an approval.\n")
	ok(t, m, `echo "- note" >> $M/agents/agent-104/scratchpad.md`)
	equal(t, ok(t, m, "cat $M/agents/agent-104/scratchpad.md"), "# Scratch\n- note\n")
	ok(t, m, "sed -i s/note/NOTE/ $M/agents/agent-104/scratchpad.md")
	equal(t, ok(t, m, "cat $M/agents/agent-104/scratchpad.md"), "# Scratch\n- NOTE\n")
	equal(t, w.storeCat("agent-104", "agents/agent-104/scratchpad.md"), "# Scratch\n- NOTE\n")
	equal(t, len(w.versions("agent-104", "agents/agent-104/scratchpad.md")), 3)
	fails(t, m, "echo x > $M/organization/principles.md", "Permission denied")
	ok(t, m, "grep -q propose/organization $M/.memory/errors")
	ok(t, m, "grep -q 'principal: agent-104' $M/.memory/whoami")
}
