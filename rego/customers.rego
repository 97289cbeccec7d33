package memory.authz

# customers/<customer>/: by role only; changes are proposed; every read is recorded.

verdicts contains "allow/customer-read" if {
	input.scope == "customers"
	input.action in looks
	known
	input.caller.customers[input.name]
}

verdicts contains "propose/customer" if {
	input.scope == "customers"
	input.depth > 2
	input.action in changes
	known
	input.caller.customers[input.name]
}
