package policy

// Effect of a decision. The zero value denies.
type Effect uint8

// Effects, weakest first.
const (
	Deny Effect = iota
	Propose
	Allow
)

// Action is what the caller wants to do. Closed list; an unknown one is denied.
type Action string

// The actions a policy decides on.
const (
	ActionList   Action = "list"   // know that the name exists: lookup, stat, readdir
	ActionRead   Action = "read"   // content, xattrs, history
	ActionWrite  Action = "write"  // content, attributes of an existing name
	ActionCreate Action = "create" // a new name: file, directory, symlink, target of a rename
	ActionDelete Action = "delete" // unlink, rmdir, source of a rename
	ActionMount  Action = "mount"  // mount as, or act as, the principal in Request.Target
	ActionAdmin  Action = "admin"  // audit, fsck, policy and status of the daemon
)

// Request is one question. Path is slash-separated, relative to the mount's root, "" for the root itself; any bytes
// but '/' and NUL may stand in a segment.
type Request struct {
	Caller    string // principal id
	Action    Action
	Path      string
	Dir       bool   // the path is (or shall be) a directory
	Ephemeral bool   // the last segment is an ephemeral name: decided as ActionList on the parent directory
	Target    string // principal id, for ActionMount
	Attested  Attested
	Claimed   Claimed
	// Content, only at commit of a write: what the policy may look at.
	Size int64
	// nil unless Engine.WantsContent; at most 1 MiB, then shorter than Size. A commit of a policy that reads content, without
	// the content, is denied.
	Content  []byte
	Commit   bool // this decision is on content, at FLUSH/FSYNC/rename
	BaseNone bool // the session never observed the memory it writes
}

// Attested facts come from the kernel or the daemon.
type Attested struct {
	Mount  string `json:"mount"`  // the mount's directory, or "cli"
	Shared bool   `json:"shared"` // uid decides who the caller is
	UID    uint32 `json:"uid"`
}

// Claimed facts are what the caller says. An allow rule may not read them.
type Claimed struct {
	Session      string `json:"session"`
	Reason       string `json:"reason"`
	Conversation string `json:"conversation"`
}

// Decision is the folded verdict.
type Decision struct {
	Effect      Effect
	Rules       []string    // "effect/rule-id" of every rule that spoke, sorted; shared, do not change
	Cause       string      // why, when nothing spoke or the evaluation failed: "no rule allows", "policy error: …"
	ID          string      // of this decision, for the audit; unique a call
	Revision    string      // of the policy snapshot: hash of policy and registry
	Obligations Obligations // of an allow
}

// Obligations come from the second document, data.memory.authz.obligations.
type Obligations struct {
	Reason    bool  `json:"reason"`     // a write needs a reason
	AuditRead bool  `json:"audit_read"` // every read is recorded
	MaxBytes  int64 `json:"max_bytes"`  // 0: no limit but the store's
	FreshBase bool  `json:"fresh_base"` // the session must have read what it replaces
}

// Principal is a registry entry as other rooms need it.
type Principal struct {
	ID         string
	Kind       string // human, agent, service
	OnBehalfOf string
	Disabled   bool
}
