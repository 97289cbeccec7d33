package control

import (
	"time"

	"memoryfs/audit"
	"memoryfs/backend"
	"memoryfs/policy"
)

// Who goes with every call: whom the caller acts as ("": itself) and what it says of itself.
type Who struct {
	As           string `json:"as,omitempty"`
	Session      string `json:"session,omitempty"`
	Reason       string `json:"reason,omitempty"`
	Conversation string `json:"conversation,omitempty"`
}

// MountSpec is a mount to make.
type MountSpec struct {
	Who
	Dir        Path `json:"dir"` // absolute
	Shared     bool `json:"shared,omitempty"`
	AllowOther bool `json:"allow_other,omitempty"`
}

// MountInfo is a mount that is there.
type MountInfo struct {
	Dir       Path   `json:"dir"`
	Principal string `json:"principal,omitempty"`
	Session   string `json:"session,omitempty"`
	Shared    bool   `json:"shared,omitempty"`
}

// PathCall names a path, relative to the memory's root; To is for mv.
type PathCall struct {
	Who
	Path    Path   `json:"path"`
	To      Path   `json:"to,omitempty"`
	Parents bool   `json:"parents,omitempty"` // mkdir
	Limit   int    `json:"limit,omitempty"`   // log; 0: all
	Number  uint64 `json:"number,omitempty"`  // show; 0: the newest
}

// DiffCall compares two versions of a memory; To 0 is the newest, From 0 the one before To.
type DiffCall struct {
	Who
	Path Path   `json:"path"`
	From uint64 `json:"from,omitempty"`
	To   uint64 `json:"to,omitempty"`
}

// DiffReply is diff. From is absent if To is the first version.
type DiffReply struct {
	From    *Version `json:"from,omitempty"`
	To      Version  `json:"to"`
	Unified string   `json:"unified"`
	Words   string   `json:"words"`
	Added   int      `json:"added"`
	Removed int      `json:"removed"`
}

// BlamedLine is a line of blame.
type BlamedLine struct {
	Line    string `json:"line"`
	Version uint64 `json:"version"`
}

// BlameReply is blame: the versions are those that brought a line, newest first.
type BlameReply struct {
	Lines    []BlamedLine `json:"lines"`
	Versions []Version    `json:"versions"`
}

// UndoCall is revert and restore.
type UndoCall struct {
	Who
	Path   Path   `json:"path"`
	Number uint64 `json:"number,omitempty"`
	DryRun bool   `json:"dry_run,omitempty"`
}

// UndoReply is what they made, or would make.
type UndoReply struct {
	Path    Path   `json:"path"`
	Version uint64 `json:"version"` // 0 in a dry run of restoring a deleted memory
	Unified string `json:"unified"`
}

// PutCall writes a file.
type PutCall struct {
	Who
	Path    Path   `json:"path"`
	Content []byte `json:"content"`
	IfMatch string `json:"if_match,omitempty"`
	Append  bool   `json:"append,omitempty"`
}

// Entry is a file or directory as ls shows it.
type Entry struct {
	Path    Path      `json:"path"`
	Name    Path      `json:"name"`
	Type    string    `json:"type"` // file, directory, symlink
	ID      string    `json:"id"`
	Size    int64     `json:"size"`
	Mode    uint32    `json:"mode"`
	Mtime   time.Time `json:"mtime"`
	Version uint64    `json:"version,omitempty"`
	SHA256  string    `json:"sha256,omitempty"`
	Target  Path      `json:"target,omitempty"`
	Write   string    `json:"write"` // yes, propose, no
}

// Version is one version of a memory with its provenance.
type Version struct {
	Memory       string    `json:"memory_id"`
	Number       uint64    `json:"number"`
	Op           string    `json:"op"`
	Path         Path      `json:"path"`
	From         Path      `json:"from,omitempty"`
	Time         time.Time `json:"time"`
	Size         int64     `json:"size"`
	Mode         uint32    `json:"mode"`
	SHA256       string    `json:"sha256,omitempty"`
	Parent       string    `json:"parent,omitempty"`
	Principal    string    `json:"principal"`
	Kind         string    `json:"principal_kind"`
	OnBehalfOf   string    `json:"on_behalf_of,omitempty"`
	Session      string    `json:"session,omitempty"`
	Conversation string    `json:"conversation,omitempty"`
	Reason       string    `json:"reason,omitempty"`
	Base         string    `json:"base"`
	Approval     string    `json:"approval"`
	Policy       string    `json:"policy_revision"`
	Decision     string    `json:"decision_id"`
	OpID         string    `json:"op_id"` // finds the audit record
	Process      string    `json:"process,omitempty"`
}

// FileReply is cat, put and show.
type FileReply struct {
	Entry   *Entry   `json:"entry,omitempty"`
	Version *Version `json:"version,omitempty"`
	Content []byte   `json:"content,omitempty"`
}

// StatusReply is status.
type StatusReply struct {
	backend.Status
	Daemon bool        `json:"daemon"` // a daemon answers, not the command itself
	PID    int         `json:"pid,omitempty"`
	Mounts []MountInfo `json:"mounts"`
}

// ExplainCall asks what policy says of somebody's action.
type ExplainCall struct {
	Who
	Principal string        `json:"principal"`
	Action    policy.Action `json:"action"`
	Path      Path          `json:"path"`
	Dir       bool          `json:"dir,omitempty"`
}

// TailCall reads the audit log.
type TailCall struct {
	Who
	From      uint64    `json:"from,omitempty"` // sequence; 0: the last Count records
	Count     int       `json:"count,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Path      Path      `json:"path,omitempty"` // and below
	Kind      string    `json:"kind,omitempty"`
	Of        string    `json:"of_session,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}

// TailReply has the exact lines; Next is where to go on.
type TailReply struct {
	Lines []string `json:"lines"`
	Next  uint64   `json:"next"`
}

func (c TailCall) wants(r audit.Record) bool {
	return (c.Principal == "" || r.Principal == c.Principal) && (c.Kind == "" || r.Kind == c.Kind) &&
		(c.Of == "" || r.Session == c.Of) && !r.Time.Before(c.Since) && below(r.Path, string(c.Path))
}
