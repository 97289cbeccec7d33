# The policy of this memory. Edit it, then: memoryfs policy test && memoryfs policy reload
#
# data.memory.authz.verdicts is a SET of "effect/rule-id" strings: deny beats allow, allow beats propose, and nothing at
# all is a refusal. Several rules may speak; each is named in the audit log. What a rule may look at:
#
#   input.action    list (know the name), read, write, create, delete, mount, admin
#   input.scope     root, organization, teams, projects, agents, users, customers, skills; principal (mount); admin
#   input.name      the segment after the scope: which team, project, agent …       ("" if none)
#   input.path      the whole path; input.segments as an array; input.depth their number; input.file the last one
#   input.dir       the path is a directory
#   input.caller    {id, kind: human|agent|service, on_behalf_of, teams: {team: role}, projects: {project: true},
#                    roles: {role: true}, serves: {user: true}, owns: {agent: true}, skills: {skill: true},
#                    customers: {customer: true}} from identities.yaml; the whole registry is data.identities
#   input.target    for mount: {id, kind, owners: {human: true}}
#   input.attested  {mount, shared, uid} by the kernel or the daemon
#   input.claimed   {session, reason, conversation}: what the caller says of itself. An allow rule may not read it.
#   input.commit    true when the decision is on content, with input.size, input.base_none and, if any rule reads it,
#                   input.content
#
# Bytes of a path that are no UTF-8, and backslashes, stand escaped (\xNN, \\) in path, name, segments and file.
package memory.authz

# Whoever the registry knows and does not call disabled.
known if input.caller.kind in {"human", "agent", "service"}

changes := {"write", "create", "delete"}

looks := {"list", "read"}

verdicts contains "deny/disabled" if input.caller.disabled

# --- The root and the scope directories themselves: seen by everyone known, changed by nobody.

verdicts contains "allow/root-look" if {
	input.scope == "root"
	input.action in looks
	known
}

verdicts contains "allow/scope-look" if {
	input.depth == 1
	input.dir
	input.scope in {"organization", "teams", "projects", "agents", "users", "customers", "skills"}
	input.action in looks
	known
}

# --- Who may take the memory on as whom.

verdicts contains "allow/mount-self" if {
	input.scope == "principal"
	input.action == "mount"
	known
	input.target.id == input.caller.id
}

verdicts contains "allow/mount-owned-agent" if {
	input.scope == "principal"
	input.action == "mount"
	input.caller.kind == "human"
	input.target.kind in {"agent", "service"}
	input.target.owners[input.caller.id]
}

verdicts contains "allow/admin" if {
	input.scope == "admin"
	input.action == "admin"
	input.caller.roles.admin
}
