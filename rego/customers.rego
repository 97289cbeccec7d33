package memory.authz

# customers/<customer>/: by role only; changes are proposed; every read is recorded (obligations.rego).

# Whoever has a role that the registry names for the customer reads.
verdicts contains "allow/customer-read" if {
	input.scope == "customers"
	input.action in {"list", "read"}
	input.caller.customers[input.name]
}

# Whoever has a role that the registry names for the customer proposes changes.
verdicts contains "propose/customer" if {
	input.scope == "customers"
	input.action in {"write", "create", "delete"}
	input.caller.customers[input.name]
}
