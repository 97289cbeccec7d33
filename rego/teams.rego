package memory.authz

# teams/<team>/: members read, maintainers write, members propose.

# Members of a team read its directory; nobody else knows of it.
verdicts contains "allow/team-read" if {
	input.scope == "teams"
	input.action in {"list", "read"}
	input.caller.teams[input.name]
}

# Maintainers of a team write in its directory.
verdicts contains "allow/team-maintainer-write" if {
	input.scope == "teams"
	input.action in {"write", "create", "delete"}
	input.inside
	input.caller.teams[input.name] == "maintainer"
}

# Maintainers make their team's directory and set its times and mode; nobody removes it directly.
verdicts contains "allow/team-maintainer-directory" if {
	input.scope == "teams"
	input.action in {"write", "create"}
	input.depth == 2
	input.dir
	input.caller.teams[input.name] == "maintainer"
}

# Members of a team propose changes in it.
verdicts contains "propose/team-member" if {
	input.scope == "teams"
	input.action in {"write", "create", "delete"}
	input.caller.teams[input.name]
}
