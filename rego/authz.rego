# The policy of this memory. Edit it, then: memoryfs policy test && memoryfs policy reload
#
# data.memory.authz.verdicts is a SET of "effect/rule-id" strings: deny beats allow, allow beats propose, and nothing at
# all is a refusal. Several rules may speak; each is named in the audit log, and `memoryfs policy explain` shows the
# comment that stands directly above it. What a rule may look at (anything else under input is refused at load):
#
#   input.action    list (know the name), read, write, create, delete, mount, admin
#   input.scope     root, organization, teams, projects, agents, users, customers, skills; principal (mount); admin
#   input.name      the segment after the scope: which team, project, agent …       ("" if none)
#   input.path      the whole path; input.segments as an array; input.depth their number; input.file the last one
#   input.inside    true below <scope>/<name>, that is from depth 3 on
#   input.dir       the path is (or shall be) a directory
#   input.caller    {id, known: true if the registry has it and does not call it disabled, kind: human|agent|service,
#                    on_behalf_of, disabled, teams: {team: role}, projects: {project: true}, roles: {role: true},
#                    serves: {user: true}, owns: {agent: true}, owners: {human: true}, skills: {skill: true},
#                    customers: {customer: true}} from identities.yaml; the whole registry is data.identities
#   input.target    for mount: another principal, in the same form; null otherwise
#   input.attested  {mount, shared, uid} by the kernel or the daemon
#   input.claimed   {session, reason, conversation}: what the caller says of itself. Only a deny or an obligation may
#                   read it; a policy in which another rule does, also through a helper, is refused.
#   input.commit    true when the decision is on content, with input.size, input.base_none and, if any rule reads it,
#                   input.content (at most 1 MiB of it; then input.content_cut is true)
#
# Bytes of a path that are no UTF-8, and backslashes, stand escaped (\xNN, \\) in path, name, segments and file.
# Scratch files of editors (ephemeral names) never come here: they follow "list" on their directory.
#
# Speed: start a rule with `input.scope == "…"` and write actions as a literal set; OPA indexes both, so that a decision
# looks only at the rules of its scope. Each comparison costs about a microsecond, a bare input.x next to nothing.
package memory.authz

# A disabled principal may do nothing.
verdicts contains "deny/disabled" if input.caller.disabled

# --- The root and the scope directories themselves: seen by everyone known, changed by nobody.

# Everyone known sees the root of the memory.
verdicts contains "allow/root-look" if {
	input.scope == "root"
	input.action in {"list", "read"}
	input.caller.known
}

# Everyone known sees the scope directories (teams, projects …), but in them only the names they may know.
verdicts contains "allow/scope-look" if {
	input.scope in {"organization", "teams", "projects", "agents", "users", "customers", "skills"}
	input.depth == 1
	input.dir
	input.action in {"list", "read"}
	input.caller.known
}

# --- Who may take the memory on as whom.

# A principal mounts as itself.
verdicts contains "allow/mount-self" if {
	input.scope == "principal"
	input.action == "mount"
	input.caller.known
	input.target.id == input.caller.id
}

# A human mounts as an agent or service that it owns.
verdicts contains "allow/mount-owned-agent" if {
	input.scope == "principal"
	input.action == "mount"
	input.caller.kind == "human"
	input.target.kind in {"agent", "service"}
	input.target.owners[input.caller.id]
}

# Nobody mounts as a disabled principal.
verdicts contains "deny/mount-disabled" if {
	input.scope == "principal"
	input.target.disabled
}

# Humans of the role admin steer the daemon: audit, fsck, policy.
verdicts contains "allow/admin" if {
	input.scope == "admin"
	input.action == "admin"
	input.caller.kind == "human"
	input.caller.roles.admin
}
