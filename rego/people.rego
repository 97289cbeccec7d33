package memory.authz

# agents/<agent>/: that agent alone writes; the humans who own it read.

verdicts contains "allow/agent-own" if {
	input.scope == "agents"
	input.caller.kind in {"agent", "service"}
	input.caller.id == input.name
	input.action in {"list", "read", "write", "create"}
}

verdicts contains "allow/agent-own-delete" if {
	input.scope == "agents"
	input.depth > 2
	input.caller.kind in {"agent", "service"}
	input.caller.id == input.name
	input.action == "delete"
}

verdicts contains "allow/agent-owner-read" if {
	input.scope == "agents"
	input.action in looks
	input.caller.kind == "human"
	input.caller.owns[input.name]
}

# users/<user>/: the user, and the agents that serve the user, read and write.

of_user if {
	input.caller.kind == "human"
	input.caller.id == input.name
}

of_user if {
	input.caller.kind in {"agent", "service"}
	input.caller.serves[input.name]
}

verdicts contains "allow/user-own" if {
	input.scope == "users"
	input.action in {"list", "read", "write", "create"}
	of_user
}

verdicts contains "allow/user-own-delete" if {
	input.scope == "users"
	input.depth > 2
	input.action == "delete"
	of_user
}
