package memory.authz

# organization/: everyone known reads; nobody writes directly.

# What only those read whom it concerns: security-policy.md and all of security/.
secured if input.name == "security-policy.md"

secured if input.name == "security"

# It concerns every human, who must know the rules to live by, and the agents and services of the role security.
concerned if input.caller.kind == "human"

concerned if {
	input.caller.known
	input.caller.roles.security
}

# Everyone known reads what concerns the whole organization.
verdicts contains "allow/organization-read" if {
	input.scope == "organization"
	input.action in {"list", "read"}
	input.caller.known
	not secured
}

# Humans, and agents of the role security, read the security documents.
verdicts contains "allow/security-read" if {
	input.scope == "organization"
	secured
	input.action in {"list", "read"}
	concerned
}

# Everyone known proposes changes of what concerns the whole organization.
verdicts contains "propose/organization" if {
	input.scope == "organization"
	input.action in {"write", "create", "delete"}
	input.depth > 1
	input.caller.known
	not secured
}

# Whoever the security documents concern proposes changes of them.
verdicts contains "propose/security" if {
	input.scope == "organization"
	secured
	input.action in {"write", "create", "delete"}
	concerned
}
