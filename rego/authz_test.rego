# The table of the policy, cell by cell: who may, and who may not. memoryfs policy test runs it, and so does every load.
package memory.authz_test

import data.memory.authz

# Callers of these tests.
maintainer := {"id": "mia", "kind": "human", "known": true, "teams": {"engineering": "maintainer"}, "projects": {"billing": true},
	"roles": {"admin": true}, "owns": {"agent-1": true}, "skills": {"report": true}, "serves": {}, "customers": {}}

member := {"id": "agent-1", "kind": "agent", "known": true, "teams": {"engineering": "member"}, "projects": {"billing": true},
	"roles": {"security": true}, "owns": {}, "skills": {}, "serves": {"mia": true}, "customers": {"acme": true}}

outsider := {"id": "agent-2", "kind": "agent", "known": true, "teams": {"support": "member"}, "projects": {}, "roles": {}, "owns": {},
	"skills": {}, "serves": {}, "customers": {}}

nobody := {"id": "ghost", "kind": ""}

# A service has rights like an agent.
service := {"id": "importer", "kind": "service", "known": true, "teams": {"engineering": "member"}, "projects": {}, "roles": {"admin": true},
	"owns": {}, "skills": {}, "serves": {"mia": true}, "customers": {}}

# Has every grant there is, and is disabled.
disabled := {"id": "dora", "kind": "human", "disabled": true, "teams": {"engineering": "maintainer"},
	"projects": {"billing": true}, "roles": {"admin": true, "security": true}, "owns": {"agent-1": true},
	"skills": {"report": true}, "serves": {}, "customers": {"acme": true}}

ask(caller, action, path) := ask_as(caller, action, path, false)

ask_dir(caller, action, path) := ask_as(caller, action, path, true)

second(segments) := segments[1] if count(segments) > 1

else := ""

ask_as(caller, action, path, dir) := v if {
	segments := [s | some s in split(path, "/"); s != ""]
	count(segments) > 0
	v := authz.verdicts with input as {"caller": caller, "action": action, "path": path, "segments": segments,
		"depth": count(segments), "scope": segments[0], "name": second(segments),
		"file": segments[count(segments) - 1], "inside": count(segments) > 2, "dir": dir}
}

# effect folds as the daemon does.
effect(v) := "deny" if {
	some x in v
	startswith(x, "deny/")
} else := "allow" if {
	some x in v
	startswith(x, "allow/")
} else := "propose" if {
	some x in v
	startswith(x, "propose/")
} else := "deny"

allowed(caller, actions, path) if {
	every a in actions { effect(ask(caller, a, path)) == "allow" }
}

proposed(caller, path) if {
	every a in {"write", "create", "delete"} { effect(ask(caller, a, path)) == "propose" }
}

denied(caller, actions, path) if {
	every a in actions { effect(ask(caller, a, path)) == "deny" }
}

every_action := {"list", "read", "write", "create", "delete"}

looks := {"list", "read"}

changes := {"write", "create", "delete"}

# --- root and scope directories

test_root_is_seen_by_everyone_known if {
	v := authz.verdicts with input as {"caller": outsider, "action": "list", "path": "", "segments": [], "depth": 0, "scope": "root", "name": "", "file": "", "dir": true}
	effect(v) == "allow"
}

test_root_is_changed_by_nobody if {
	every a in changes {
		v := authz.verdicts with input as {"caller": maintainer, "action": a, "path": "", "segments": [], "depth": 0, "scope": "root", "name": "", "file": "", "dir": true}
		effect(v) == "deny"
	}
}

test_scope_directories if {
	every s in {"organization", "teams", "projects", "agents", "users", "customers", "skills"} {
		effect(ask_dir(outsider, "list", s)) == "allow"
		effect(ask_dir(maintainer, "delete", s)) != "allow"
		effect(ask_dir(maintainer, "create", s)) != "allow"
		effect(ask_dir(maintainer, "write", s)) != "allow"
		effect(ask_dir(nobody, "list", s)) == "deny"
	}
}

test_unknown_scope_is_denied if denied(maintainer, every_action, "elsewhere/x.md")

# --- organization

test_organization_read_by_everyone_known if allowed(outsider, looks, "organization/principles.md")

test_organization_written_by_nobody if {
	proposed(maintainer, "organization/principles.md")
	proposed(outsider, "organization/principles.md")
}

test_organization_unknown_caller if denied(nobody, every_action, "organization/principles.md")

test_security_read_by_whom_it_concerns if {
	allowed(maintainer, looks, "organization/security-policy.md")
	allowed(member, looks, "organization/security-policy.md")
	allowed(member, looks, "organization/security/keys.md")
	denied(outsider, every_action, "organization/security-policy.md")
	denied(outsider, every_action, "organization/security/keys.md")
}

test_security_is_proposed if {
	proposed(maintainer, "organization/security-policy.md")
	proposed(member, "organization/security/keys.md")
}

# --- teams

test_team_members_read if {
	allowed(member, looks, "teams/engineering/architecture.md")
	effect(ask_dir(member, "list", "teams/engineering")) == "allow"
}

test_team_outsiders_know_nothing if {
	denied(outsider, every_action, "teams/engineering/architecture.md")
	effect(ask_dir(outsider, "list", "teams/engineering")) == "deny"
}

test_team_maintainer_writes if allowed(maintainer, changes, "teams/engineering/architecture.md")

test_team_member_proposes if proposed(member, "teams/engineering/architecture.md")

test_team_directory_is_made_by_a_maintainer_and_removed_by_nobody if {
	effect(ask_dir(maintainer, "create", "teams/engineering")) == "allow"
	effect(ask_dir(maintainer, "write", "teams/engineering")) == "allow"
	effect(ask_dir(maintainer, "delete", "teams/engineering")) == "propose"
	effect(ask(maintainer, "create", "teams/engineering")) == "propose" # a file of that name
	effect(ask_dir(member, "create", "teams/engineering")) == "propose"
	effect(ask_dir(outsider, "create", "teams/engineering")) == "deny"
	effect(ask_dir(maintainer, "create", "teams/unheard-of")) == "deny"
}

test_team_subdirectories_follow_write if {
	effect(ask_dir(maintainer, "create", "teams/engineering/adr")) == "allow"
	effect(ask_dir(maintainer, "delete", "teams/engineering/adr")) == "allow"
	effect(ask_dir(member, "create", "teams/engineering/adr")) == "propose"
	effect(ask_dir(outsider, "create", "teams/engineering/adr")) == "deny"
}

test_maintainer_of_one_team_is_none_of_another if denied(maintainer, every_action, "teams/support/faq.md")

# --- projects

test_project_read_by_its_people if {
	allowed(member, looks, "projects/billing/known-issues.md")
	denied(outsider, every_action, "projects/billing/known-issues.md")
}

test_project_is_proposed if proposed(maintainer, "projects/billing/known-issues.md")

test_project_decisions_always_by_approval if {
	proposed(maintainer, "projects/billing/decisions.md")
	proposed(member, "projects/billing/decisions.md")
}

test_project_status_and_incidents_direct if {
	allowed(member, changes, "projects/billing/current-status.md")
	allowed(maintainer, changes, "projects/billing/current-status.md")
	allowed(member, changes, "projects/billing/incidents/2026-01-01.md")
	effect(ask_dir(member, "create", "projects/billing/incidents")) == "allow"
	effect(ask_dir(member, "delete", "projects/billing/incidents")) == "propose"
}

test_project_status_of_others if denied(outsider, every_action, "projects/billing/current-status.md")

test_incidents_of_others if denied(outsider, every_action, "projects/billing/incidents/2026-01-01.md")

test_status_must_be_where_it_is_expected if {
	proposed(member, "projects/billing/old/current-status.md")
	proposed(member, "projects/billing/old/incidents/2026-01-01.md")
	effect(ask_dir(member, "create", "projects/billing/current-status.md")) == "propose"
}

test_project_directory_is_proposed if {
	effect(ask_dir(maintainer, "create", "projects/billing")) == "propose"
	effect(ask_dir(outsider, "create", "projects/billing")) == "deny"
}

# --- agents

test_agent_alone_writes_its_directory if {
	allowed(member, every_action, "agents/agent-1/scratchpad.md")
	effect(ask_dir(member, "create", "agents/agent-1")) == "allow"
	effect(ask_dir(member, "delete", "agents/agent-1")) == "deny"
	effect(ask(member, "create", "agents/agent-1")) == "deny" # a file of that name
	effect(ask_dir(member, "create", "agents/agent-2")) == "deny"
}

test_service_has_a_directory_like_an_agent if allowed(service, every_action, "agents/importer/state.md")

test_owner_reads_the_agent if {
	allowed(maintainer, looks, "agents/agent-1/scratchpad.md")
	denied(maintainer, changes, "agents/agent-1/scratchpad.md")
}

# An agent that owns another, which the registry refuses, would read nothing by it.
test_only_humans_own if {
	denied(object.union(outsider, {"owns": {"agent-1": true}}), every_action, "agents/agent-1/scratchpad.md")
}

test_other_agents_know_nothing if denied(outsider, every_action, "agents/agent-1/scratchpad.md")

test_human_of_an_agents_name_is_not_it if {
	denied({"id": "agent-1", "kind": "human", "known": true}, changes, "agents/agent-1/scratchpad.md")
}

# --- users

test_user_and_serving_agents if {
	allowed(maintainer, every_action, "users/mia/preferences.md")
	allowed(member, every_action, "users/mia/preferences.md")
	denied(outsider, every_action, "users/mia/preferences.md")
}

test_serving_service if allowed(service, every_action, "users/mia/preferences.md")

test_user_directory_is_made if {
	effect(ask_dir(maintainer, "create", "users/mia")) == "allow"
	effect(ask_dir(member, "create", "users/mia")) == "allow"
	effect(ask_dir(outsider, "create", "users/mia")) == "deny"
	effect(ask(maintainer, "create", "users/mia")) == "deny"
}

test_agent_named_like_a_user_is_not_it if {
	denied({"id": "mia", "kind": "agent", "known": true}, every_action, "users/mia/preferences.md")
}

test_user_directory_is_not_removed if effect(ask_dir(maintainer, "delete", "users/mia")) == "deny"

# --- customers

test_customer_by_role_only if {
	allowed(member, looks, "customers/acme/contract.md")
	proposed(member, "customers/acme/contract.md")
	denied(maintainer, every_action, "customers/acme/contract.md")
	denied(outsider, every_action, "customers/acme/contract.md")
}

test_customer_reads_are_recorded if {
	o := authz.obligations with input as {"scope": "customers"}
	o.audit_read == true
	n := authz.obligations with input as {"scope": "teams"}
	not n.audit_read
}

# --- skills

test_skill if {
	allowed(outsider, looks, "skills/report/SKILL.md")
	allowed(maintainer, changes, "skills/report/SKILL.md")
	proposed(outsider, "skills/report/SKILL.md")
	proposed(maintainer, "skills/other/SKILL.md")
	denied(nobody, every_action, "skills/report/SKILL.md")
	effect(ask_dir(maintainer, "create", "skills/report")) == "allow"
	effect(ask_dir(maintainer, "delete", "skills/report")) == "propose"
	effect(ask_dir(outsider, "create", "skills/new")) == "propose"
}

# --- mount, admin, disabled

mounting(caller, target) := v if {
	v := authz.verdicts with input as {"caller": caller, "action": "mount", "scope": "principal", "target": target}
}

test_mount if {
	effect(mounting(maintainer, {"id": "mia", "kind": "human", "owners": {}})) == "allow"
	effect(mounting(maintainer, {"id": "agent-1", "kind": "agent", "owners": {"mia": true}})) == "allow"
	effect(mounting(maintainer, {"id": "agent-2", "kind": "agent", "owners": {"leo": true}})) == "deny"
	effect(mounting(maintainer, {"id": "leo", "kind": "human", "owners": {"mia": true}})) == "deny"
	effect(mounting(member, {"id": "agent-2", "kind": "agent", "owners": {"agent-1": true}})) == "deny"
	effect(mounting(nobody, {"id": "ghost", "kind": ""})) == "deny"
}

test_mount_as_a_disabled_agent if {
	effect(mounting(maintainer, {"id": "agent-1", "kind": "agent", "owners": {"mia": true}, "disabled": true})) == "deny"
}

administering(caller) := v if {
	v := authz.verdicts with input as {"caller": caller, "action": "admin", "scope": "admin"}
}

test_admin if {
	effect(administering(maintainer)) == "allow"
	effect(administering(member)) == "deny"
	effect(administering(service)) == "deny" # humans only, whatever the roles
	effect(administering(disabled)) == "deny"
	effect(administering(nobody)) == "deny"
}

test_disabled if {
	every path in {"organization/principles.md", "organization/security/keys.md", "teams/engineering/architecture.md",
		"projects/billing/current-status.md", "agents/agent-1/scratchpad.md", "users/dora/preferences.md",
		"customers/acme/contract.md", "skills/report/SKILL.md"} {
		denied(disabled, every_action, path)
	}
	effect(ask_dir(disabled, "list", "teams")) == "deny"
	effect(mounting(disabled, {"id": "dora", "kind": "human", "owners": {}})) == "deny"
}

# --- names that one may not know are not listed

test_hidden_names if {
	every path in {"teams/engineering", "projects/billing", "agents/agent-1", "users/mia", "customers/acme"} {
		effect(ask_dir(outsider, "list", path)) == "deny"
		effect(ask_dir(nobody, "list", path)) == "deny"
	}
	effect(ask_dir(outsider, "list", "skills/report")) == "allow"
}

test_known_names if {
	every path in {"teams/engineering", "projects/billing", "agents/agent-1", "users/mia", "customers/acme"} {
		effect(ask_dir(member, "list", path)) == "allow"
	}
}

# --- what a caller claims of itself changes nothing

test_claims_do_not_allow if {
	v := authz.verdicts with input as {"caller": outsider, "action": "read", "scope": "teams", "name": "engineering",
		"path": "teams/engineering/a.md", "segments": ["teams", "engineering", "a.md"], "depth": 3, "file": "a.md",
		"inside": true, "dir": false, "claimed": {"session": "mia", "reason": "I am a member", "conversation": "1"}}
	effect(v) == "deny"
}
