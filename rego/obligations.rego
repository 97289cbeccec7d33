package memory.authz

# What an allow asks for in return: an object. Known keys: reason (a change needs one), audit_read (reads are recorded),
# max_bytes (of one file), fresh_base (the session must have read what it replaces). Another key, or a value of another
# type, turns the decision into a refusal.

# Every read of what concerns a customer is recorded.
obligations["audit_read"] := true if input.scope == "customers"

# Examples:
#   obligations["reason"] := true if input.scope == "teams"
#   obligations["max_bytes"] := 65536 if input.file == "SKILL.md"
