package store

import (
	"time"

	"memoryfs/backend/kv"
)

// ID names an inode (and, for a file, the memory and its history) for ever: a raw UUIDv7.
type ID [16]byte

// RootID is the root directory's id in every store.
var RootID = ID{15: 1}

// Sum is the SHA-256 of a content.
type Sum [32]byte

// Type of an inode. Stored: do not reorder. The zero value is invalid.
type Type uint8

// The inode types.
const (
	TypeInvalid Type = iota
	TypeFile
	TypeDir
	TypeSymlink
)

// Inode is the value of n/<file>. Times have nanoseconds; the zero time means "not set".
type Inode struct {
	ID     ID
	Type   Type
	Mode   uint32 // permission bits, 07777
	Ino    uint64 // st_ino: stable over rename and remount; moves with the renamed file when it replaces a memory
	Parent ID     // zero for the root and for what is unlinked
	Name   string // in Parent; the last name for what is unlinked
	Owner  string // principal that alone sees it: an ephemeral; "" for a memory
	Target string // of a symlink
	Atime  time.Time
	Mtime  time.Time // directories and symlinks; a file's is in its Head
	Ctime  time.Time
	Btime  time.Time
	Xattrs map[string][]byte // user.* as set by programs
	Gone   bool              // unlinked: kept for its history
}

// Dentry is one name in a directory.
type Dentry struct {
	Name string
	ID   ID
	Type Type
	Ino  uint64 // stored with the dentry (a rename that changes the inode number rewrites it), so that readdir is one scan
}

// Head is the value of h/<file>: the compare-and-swap target of content.
type Head struct {
	Version uint64 // 0 for an ephemeral, which has no versions
	Sum     Sum
	Size    int64
	Mtime   time.Time
}

// Kind says what a version (or a change of the tree) did. Stored: do not rename.
type Kind string

// The kinds of GOVERNANCE.md section 3, and the changes of the tree that make no version.
const (
	KindCreate  Kind = "create"
	KindWrite   Kind = "write"
	KindAppend  Kind = "append"
	KindRename  Kind = "rename"
	KindDelete  Kind = "delete"
	KindRestore Kind = "restore"
	KindRevert  Kind = "revert"
	KindImport  Kind = "import"
	KindApply   Kind = "apply"
	KindRedact  Kind = "redact"

	KindMkdir   Kind = "mkdir"
	KindRmdir   Kind = "rmdir"
	KindMove    Kind = "move" // a directory or a symlink
	KindSymlink Kind = "symlink"
	KindUnlink  Kind = "unlink" // a symlink
	KindSetattr Kind = "setattr"
	KindXattr   Kind = "xattr"
)

// Provenance is what the daemon stamps on a version; the writer never does. GOVERNANCE.md section 3.
type Provenance struct {
	Principal      string `json:"principal"`
	PrincipalKind  string `json:"principal_kind"`
	OnBehalfOf     string `json:"on_behalf_of,omitempty"`
	Session        string `json:"session,omitempty"`
	Conversation   string `json:"conversation,omitempty"`
	Reason         string `json:"reason,omitempty"`
	Base           string `json:"base"`     // "current" or "none"
	Approval       string `json:"approval"` // "direct", later a proposal
	PolicyRevision string `json:"policy_revision"`
	DecisionID     string `json:"decision_id"`
	Process        string `json:"process,omitempty"` // colour only
}

// Version is the value of v/<file>/<n>: immutable.
type Version struct {
	Memory ID        `json:"-"`
	Number uint64    `json:"number"`
	Parent Sum       `json:"-"` // content of version Number-1; zero for the first
	Sum    Sum       `json:"-"` // zero for a delete
	Size   int64     `json:"size"`
	Mode   uint32    `json:"mode"`
	Time   time.Time `json:"time"`
	Kind   Kind      `json:"op"`
	Path   string    `json:"path"`           // where it was when the version was made
	From   string    `json:"from,omitempty"` // the former path, of a rename or of the file that replaced it
	Op     ID        `json:"-"`              // the audit intent's id
	Salt   [16]byte  `json:"-"`              // of the audit record's commitment to the content
	Prov   Provenance
}

// Change is who and why, for every method that changes the store.
type Change struct {
	Op   ID        // fence, idempotency key and key of the audit intent; NewID()
	Time time.Time // of the version; the zero time means now
	Kind Kind      // overrides the kind that the method would record; "" for that kind
	Prov Provenance
	// Record renders the audit intent for what is about to be committed; the bytes go into the same commit. It may be
	// called again when the store retries. nil only for ephemerals. An error stops the change.
	Record func(Changed) ([]byte, error)
}

// Changed is what a commit is about to change; given to Change.Record.
type Changed struct {
	Kind     Kind
	Type     Type
	ID       ID
	Path     string   // where it is (was, for a delete)
	From     string   // former path of a rename or move
	Version  *Version // the new version of ID; nil when none is made
	Replaced *Version // of a rename over a memory: the tombstone version of the file that was moved onto ID; else nil
	Attr     string   // which attribute, for setattr and xattr
}

// Base is the content a writer started from, compared by hash.
type Base struct {
	Any bool // no check (the writer never observed the memory)
	Sum Sum
}

// Place is a name in a directory. Owner "" is the memory tree, else the ephemerals of that principal.
type Place struct {
	Parent ID
	Name   string
	Owner  string
}

// Bytes is content handed to the store: read once or twice from the start; not kept after the call returns.
type Bytes interface {
	ReadAt(p []byte, off int64) (int, error)
	Size() int64
}

// NewFile asks for a file. ID and Ino come from Store.NewID and Store.NewIno, given out before the commit so that a
// program can stat a file that is not committed yet.
type NewFile struct {
	Place
	ID      ID
	Revive  bool // ID is a deleted memory's: its history goes on
	Ino     uint64
	Mode    uint32
	Mtime   time.Time // zero: now
	Btime   time.Time // when a program created it, which may be before this commit; zero: now
	Content Bytes     // nil: empty
	Xattrs  map[string][]byte
}

// RenameRequest moves From to To. What happens depends on both:
//
//   - memory to a free name: the dentry moves; a file gets a version of KindRename with the same content.
//   - file (memory or ephemeral) onto a memory: To's memory gets a version with From's bytes (none if they are equal
//     to its head), and takes over From's Ino; From's memory, if it was one, ends with a KindDelete version.
//   - ephemeral to a free memory name: a new memory with its bytes, KindCreate, same Ino, id IDNew.
//   - memory file to an ephemeral name (an editor's backup): a new ephemeral with the memory's bytes and Ino takes the
//     name, replacing one that is there; the memory stays where it is, unchanged, with a fresh Ino. No version.
//   - ephemeral to ephemeral: the name moves, replacing.
//   - directory onto an empty directory replaces it. O(1) whatever lies below.
type RenameRequest struct {
	From, To  Place
	NoReplace bool // RENAME_NOREPLACE: ErrExist if To is there
	Base      Base // stale check on To's memory, if there is one
	IDNew     ID   // for an inode that the rename makes
	InoNew    uint64
}

// Renamed says what a rename did.
type Renamed struct {
	Moved    ID   // inode that is now at To
	Replaced ID   // inode that was at To and is gone as an inode number; zero if none
	Head     Head // of Moved, for a file
	Backup   bool // memory to ephemeral: From is still in the tree
}

// SetattrRequest changes what is not nil. Mtime of a file is its head's.
type SetattrRequest struct {
	Mode  *uint32
	Atime *time.Time
	Mtime *time.Time
}

// Batch is what one commit changed, for invalidation.
type Batch struct {
	Rev     kv.Rev
	Inodes  []ID    // attributes or content
	Entries []Place // names that came, went or changed
}

// Problem is one finding of Fsck.
type Problem struct {
	Key    string // printable
	Detail string
}

// FsckReport counts what was checked and lists what is wrong.
type FsckReport struct {
	Inodes, Dirs, Files, Symlinks, Versions, Blobs, Ephemerals int
	Bytes                                                      int64
	Problems                                                   []Problem
}

// Options of Open. Zero values mean the defaults in parentheses.
type Options struct {
	MaxFile   int64            // bytes of one file (64 MiB)
	ChunkSize int              // bytes (256 KiB); larger contents are stored as lists of chunks
	Now       func() time.Time // (time.Now)
	BlobDir   string           // where the chunks of large contents lie as files (none: they are values of the engine)
	Room      *Room            // of BlobDir's volume
}

// Intent is one pending audit record: the value of a/i/<op>.
type Intent struct {
	Rev  kv.Rev
	Op   ID
	Data []byte
}
