package memory.authz

# organization/: everyone known reads; nobody writes directly.

security_document if input.name == "security-policy.md"

security_document if input.name == "security"

# The agents it concerns have the role security; humans always may know the rules they live by.
concerned if input.caller.kind == "human"

concerned if {
	known
	input.caller.roles.security
}

verdicts contains "allow/organization-read" if {
	input.scope == "organization"
	input.depth > 1
	input.action in looks
	known
	not security_document
}

verdicts contains "allow/security-read" if {
	input.scope == "organization"
	security_document
	input.action in looks
	concerned
}

verdicts contains "propose/organization" if {
	input.scope == "organization"
	input.depth > 1
	input.action in changes
	known
	not security_document
}

verdicts contains "propose/security" if {
	input.scope == "organization"
	security_document
	input.action in changes
	concerned
}
