package policy

// Scopes are the names that may stand at the memory's root.
func Scopes() []string { return scopeNames() }
