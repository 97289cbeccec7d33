package memory.authz

# projects/<project>/: its agents and humans read; they propose, but for the current status and incidents, which they
# write. decisions.md is always by approval.

verdicts contains "allow/project-read" if {
	input.scope == "projects"
	input.action in looks
	input.caller.projects[input.name]
}

verdicts contains "allow/project-status" if {
	input.scope == "projects"
	input.depth == 3
	input.file == "current-status.md"
	not input.dir
	input.action in changes
	input.caller.projects[input.name]
}

verdicts contains "allow/project-incidents" if {
	input.scope == "projects"
	input.depth > 3
	input.segments[2] == "incidents"
	input.action in changes
	input.caller.projects[input.name]
}

# The directory of incidents may be made, and its times set; it is not removed directly.
verdicts contains "allow/project-incidents-directory" if {
	input.scope == "projects"
	input.depth == 3
	input.file == "incidents"
	input.dir
	input.action in {"create", "write"}
	input.caller.projects[input.name]
}

verdicts contains "propose/project" if {
	input.scope == "projects"
	input.depth > 2
	input.action in changes
	input.caller.projects[input.name]
}
