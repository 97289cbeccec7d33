package policy

import "fmt"

// SampleRegistry is the identities.yaml that init writes: the human who ran it, a second one, two agents, two teams and
// a project. uid is the human's.
func SampleRegistry(human string, uid int) []byte {
	second := "reviewer"
	if human == second {
		second = "reviewer-2"
	}
	return fmt.Appendf(nil, `# identities.yaml: who is who. Unknown keys and references to nobody are refused; the old registry serves on until
# the new one is whole (memoryfs policy check, memoryfs policy reload).
humans:
  - id: %[1]s
    uids: [%[3]d]                # on the control socket and on --shared mounts, this uid is this human
    roles: [admin, security, account-acme] # admin: audit, fsck, policy; security: approves what concerns it
  - id: %[2]s
    roles: [security]
agents:
  - id: agent-104
    owners: [%[1]s]             # may mount as the agent, and read its directory
    on_behalf_of: %[1]s
    serves: [%[1]s]             # reads and writes users/%[1]s/
    roles: [security, account-acme]
  - id: agent-205
    owners: [%[1]s]
    on_behalf_of: %[1]s
    serves: [%[1]s]
services: []
teams:
  - id: engineering
    maintainers: [%[1]s]
    members: [%[2]s, agent-104, agent-205]
  - id: support
    maintainers: [%[1]s]
    members: [%[2]s]
projects:
  - id: billing-redesign
    members: [%[1]s, %[2]s, agent-104, agent-205]
skills:
  - id: incident-report
    maintainers: [%[1]s]
customers:
  - id: acme
    roles: [account-acme]      # whoever has one of these roles; every read is recorded
`, human, second, uid)
}
