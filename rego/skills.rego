package memory.authz

# skills/<skill>/: everyone known reads, maintainers of the skill write, others propose.

verdicts contains "allow/skill-read" if {
	input.scope == "skills"
	input.depth > 1
	input.action in looks
	known
}

verdicts contains "allow/skill-maintainer-write" if {
	input.scope == "skills"
	input.depth > 2
	input.action in changes
	input.caller.skills[input.name]
}

verdicts contains "allow/skill-maintainer-directory" if {
	input.scope == "skills"
	input.depth == 2
	input.dir
	input.action == "write"
	input.caller.skills[input.name]
}

verdicts contains "propose/skill" if {
	input.scope == "skills"
	input.depth > 1
	input.action in changes
	known
}
