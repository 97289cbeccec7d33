package audit

import (
	"context"
	"time"
)

// Record is one line of the log, as JSON with these keys. Sequence, Time of taking over and Rev are set by the log;
// the rest by the writer. No content, no secrets.
type Record struct {
	Seq       uint64    `json:"seq"`             // from 1, gapless
	Rev       uint64    `json:"rev,omitempty"`   // store revision of a change
	Time      time.Time `json:"time"`            // when it happened
	Kind      string    `json:"kind"`            // change, refusal, read, mount, unmount, policy, recover, start, stop
	Op        string    `json:"op"`              // create, write, …; or the refused operation
	OpID      string    `json:"op_id,omitempty"` // of a change: the intent's UUID
	Path      string    `json:"path,omitempty"`  // see Quote: any bytes, unambiguous
	From      string    `json:"from,omitempty"`
	Memory    string    `json:"memory,omitempty"` // UUID
	Version   uint64    `json:"version,omitempty"`
	Commit    string    `json:"commitment,omitempty"` // hex HMAC-SHA256(version salt, content hash)
	Replaced  *Replaced `json:"replaced,omitempty"`
	Size      int64     `json:"size,omitempty"`
	Principal string    `json:"principal,omitempty"`
	PKind     string    `json:"principal_kind,omitempty"`
	OnBehalf  string    `json:"on_behalf_of,omitempty"`
	Session   string    `json:"session,omitempty"`
	Convers   string    `json:"conversation,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Base      string    `json:"base,omitempty"`
	Approval  string    `json:"approval,omitempty"`
	Process   string    `json:"process,omitempty"`
	UID       *uint32   `json:"uid,omitempty"`
	Mount     string    `json:"mount,omitempty"`
	Errno     string    `json:"errno,omitempty"` // EACCES, EAGAIN, …
	Rules     []string  `json:"rules,omitempty"`
	Decision  string    `json:"decision,omitempty"`
	Policy    string    `json:"policy,omitempty"` // revision
	Cause     string    `json:"cause,omitempty"`
	Count     int       `json:"count,omitempty"` // identical refusals that this record stands for, when more than one
}

// Replaced is the second version that a rename over a memory makes: the tombstone of the file that was moved.
type Replaced struct {
	Memory  string `json:"memory"`
	Version uint64 `json:"version"`
}

// Intent is a record that was committed with its change and waits to be taken over.
type Intent struct {
	Rev  uint64
	Op   [16]byte
	Data []byte // JSON of a Record without seq and rev
}

// Source is the store as the log's writer sees it; backend implements it. Only the log's one writer calls it, with a
// timeout; it must not call back into the Log.
type Source interface {
	// Intents lists up to limit intents with a revision over after, in revision order. An intent is never listed after
	// one with a higher revision was. Those that were taken and not dropped yet are listed like any other.
	Intents(ctx context.Context, after uint64, limit int) ([]Intent, error)
	// Taken drops the intents and stores tail, atomically: tail is there no earlier than the last intent is gone.
	Taken(ctx context.Context, ops [][16]byte, tail []byte) error
	// Tail is what Taken stored last, nil before the first time.
	Tail(ctx context.Context) ([]byte, error)
}

// Fact is one version that the store holds, for Verify.
type Fact struct {
	Memory  string
	Version uint64
	Head    bool
	Commit  string // commitment recomputed from the store
}

// Report is what Verify found.
type Report struct {
	Records  uint64    `json:"records"`
	Last     uint64    `json:"last_seq"`
	Versions int       `json:"versions"`
	Pending  int       `json:"pending"`        // intents not yet taken over; they count as records
	Problems []Problem `json:"problems"`       // by record, the first bad one first; then those that name no record
	More     int       `json:"more,omitempty"` // problems that are not listed, past a thousand
}

// Problem is one thing that is not as it should be.
type Problem struct {
	Seq    uint64 `json:"seq,omitempty"` // the record; 0 for what has none
	Memory string `json:"memory,omitempty"`
	Detail string `json:"detail"`
}
