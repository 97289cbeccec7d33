package memory.authz

# projects/<project>/: its agents and humans read; they propose, but for the current status and incidents, which they
# write. decisions.md is always by approval.

# Members of a project read its directory; nobody else knows of it.
verdicts contains "allow/project-read" if {
	input.scope == "projects"
	input.action in {"list", "read"}
	input.caller.projects[input.name]
}

# Members of a project write its current-status.md.
verdicts contains "allow/project-status" if {
	input.scope == "projects"
	input.file == "current-status.md"
	input.action in {"write", "create", "delete"}
	input.depth == 3
	not input.dir
	input.caller.projects[input.name]
}

# Members of a project write in its incidents directory.
verdicts contains "allow/project-incidents" if {
	input.scope == "projects"
	input.segments[2] == "incidents"
	input.action in {"write", "create", "delete"}
	input.depth > 3
	input.caller.projects[input.name]
}

# Members make the directory of incidents and set its times and mode; nobody removes it directly.
verdicts contains "allow/project-incidents-directory" if {
	input.scope == "projects"
	input.file == "incidents"
	input.action in {"write", "create"}
	input.depth == 3
	input.dir
	input.caller.projects[input.name]
}

# Members of a project propose changes of all else, decisions.md always.
verdicts contains "propose/project" if {
	input.scope == "projects"
	input.action in {"write", "create", "delete"}
	input.caller.projects[input.name]
}
