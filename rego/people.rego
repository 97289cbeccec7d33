package memory.authz

# agents/<agent>/: that agent alone writes; the humans who own it read.

# The caller is the agent (or service) of this name; a human of the same name is not.
own_agent if {
	input.caller.kind in {"agent", "service"}
	input.caller.id == input.name
}

# An agent reads its own directory.
verdicts contains "allow/agent-own" if {
	input.scope == "agents"
	input.action in {"list", "read"}
	own_agent
}

# An agent, and nobody else, writes in its own directory.
verdicts contains "allow/agent-own-write" if {
	input.scope == "agents"
	input.action in {"write", "create", "delete"}
	input.inside
	own_agent
}

# An agent makes its own directory and sets its times and mode; nobody removes it.
verdicts contains "allow/agent-own-directory" if {
	input.scope == "agents"
	input.action in {"write", "create"}
	input.depth == 2
	input.dir
	own_agent
}

# The humans who own an agent read its directory.
verdicts contains "allow/agent-owner-read" if {
	input.scope == "agents"
	input.action in {"list", "read"}
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

# A user, and the agents that serve the user, read the user's directory.
verdicts contains "allow/user-own" if {
	input.scope == "users"
	input.action in {"list", "read"}
	of_user
}

# A user, and the agents that serve the user, write in the user's directory.
verdicts contains "allow/user-own-write" if {
	input.scope == "users"
	input.action in {"write", "create", "delete"}
	input.inside
	of_user
}

# They make the directory and set its times and mode; nobody removes it.
verdicts contains "allow/user-own-directory" if {
	input.scope == "users"
	input.action in {"write", "create"}
	input.depth == 2
	input.dir
	of_user
}
