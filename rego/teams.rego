package memory.authz

# teams/<team>/: members read, maintainers write, members propose.

verdicts contains "allow/team-read" if {
	input.scope == "teams"
	input.action in looks
	input.caller.teams[input.name]
}

verdicts contains "allow/team-maintainer-write" if {
	input.scope == "teams"
	input.depth > 2
	input.action in changes
	input.caller.teams[input.name] == "maintainer"
}

# Times and mode of the team's own directory (cp -a sets them); it is neither made nor removed here.
verdicts contains "allow/team-maintainer-directory" if {
	input.scope == "teams"
	input.depth == 2
	input.dir
	input.action == "write"
	input.caller.teams[input.name] == "maintainer"
}

verdicts contains "propose/team-member" if {
	input.scope == "teams"
	input.depth > 2
	input.action in changes
	input.caller.teams[input.name]
}
