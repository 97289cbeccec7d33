package policy

import (
	"fmt"
	"regexp"
	"strings"
)

// SampleRegistry is the identities.yaml that init writes: the human who ran it, a second one, two agents, two teams and
// a project. uid is the human's. human may be any login name; what an id may not hold becomes '_'.
func SampleRegistry(human string, uid int) []byte {
	id := sampleID(human)
	names := make([]any, 0, 5)
	names = append(names, quoted(id))
	for _, other := range []string{"reviewer", "agent-104", "agent-205"} {
		if other == id {
			other += "-2"
		}
		names = append(names, other)
	}
	return fmt.Appendf(nil, `# identities.yaml: who is who. Unknown keys and references to nobody are refused; the old registry serves on until
# the new one is whole (memoryfs policy check, memoryfs policy reload).
humans:
  - id: %[1]s
    uids: [%[5]d]                # on the control socket and on --shared mounts, this uid is this human
    roles: [admin, security, account-acme] # admin: audit, fsck, policy; security: approves what concerns it
  - id: %[2]s
    roles: [security]          # disabled: true takes every right away and keeps the name
agents:
  - id: %[3]s
    owners: [%[1]s]             # may mount as the agent, and read its directory
    on_behalf_of: %[1]s
    serves: [%[1]s]             # reads and writes users/%[1]s/
    roles: [security, account-acme]
  - id: %[4]s
    owners: [%[1]s]
    on_behalf_of: %[1]s
    serves: [%[1]s]
services: []
teams:
  - id: engineering
    maintainers: [%[1]s]
    members: [%[2]s, %[3]s, %[4]s]
  - id: support
    maintainers: [%[1]s]
    members: [%[2]s]
projects:
  - id: billing-redesign
    members: [%[1]s, %[2]s, %[3]s, %[4]s]
skills:
  - id: incident-report
    maintainers: [%[1]s]
customers:
  - id: acme
    roles: [account-acme]      # whoever has one of these roles; every read is recorded
`, append(names, uid)...)
}

var (
	notID     = regexp.MustCompile(`[^A-Za-z0-9._@+-]`)
	plainYAML = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9._-]*$`)
)

func sampleID(login string) string {
	id := notID.ReplaceAllString(login, "_")
	if id == "" || strings.ContainsAny(id[:1], ".@+-") {
		id = "_" + id
	}
	return id[:min(len(id), 100)]
}

// quoted keeps a login like "no" or "007" from being read as anything but a name.
func quoted(id string) string {
	switch strings.ToLower(id) {
	case "true", "false", "yes", "no", "on", "off", "null", "y", "n":
		return `"` + id + `"`
	}
	if !plainYAML.MatchString(id) {
		return `"` + id + `"`
	}
	return id
}
