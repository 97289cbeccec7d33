package memory.authz

# skills/<skill>/: everyone known reads, maintainers of the skill write, others propose.

# Everyone known reads every skill.
verdicts contains "allow/skill-read" if {
	input.scope == "skills"
	input.action in {"list", "read"}
	input.caller.known
}

# Maintainers of a skill write in its directory.
verdicts contains "allow/skill-maintainer-write" if {
	input.scope == "skills"
	input.action in {"write", "create", "delete"}
	input.inside
	input.caller.skills[input.name]
}

# Maintainers make their skill's directory and set its times and mode; nobody removes it directly.
verdicts contains "allow/skill-maintainer-directory" if {
	input.scope == "skills"
	input.action in {"write", "create"}
	input.depth == 2
	input.dir
	input.caller.skills[input.name]
}

# Everyone known proposes changes of skills, and new ones.
verdicts contains "propose/skill" if {
	input.scope == "skills"
	input.action in {"write", "create", "delete"}
	input.depth > 1
	input.caller.known
}
