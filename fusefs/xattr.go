package fusefs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// The read-only attributes of SEMANTICS.md section 6: where a memory comes from, and whether one may write it.
const (
	xaID       = backend.XattrPrefix + "id"
	xaVersion  = backend.XattrPrefix + "version"
	xaSHA256   = backend.XattrPrefix + "sha256"
	xaAuthor   = backend.XattrPrefix + "author"
	xaSession  = backend.XattrPrefix + "session"
	xaReason   = backend.XattrPrefix + "reason"
	xaTime     = backend.XattrPrefix + "time"
	xaApproval = backend.XattrPrefix + "approval"
	xaWrite    = backend.XattrPrefix + "write"
)

// memoryXattrs names those that an inode has.
func (n *node) memoryXattrs(s state) []string {
	switch {
	case s.gone, s.Inode.Type == store.TypeSymlink:
		return nil
	case s.Inode.Type == store.TypeDir:
		return []string{xaID, xaWrite}
	case s.Inode.Owner != "":
		return []string{xaWrite}
	}
	return append([]string{xaID, xaWrite}, versionXattrs...)
}

// versionXattrs are of a version: the head's on a live memory, its own on a file of the history.
var versionXattrs = []string{xaVersion, xaSHA256, xaAuthor, xaSession, xaReason, xaTime, xaApproval}

func versionXattr(ver store.Version, attr string) (value []byte, ok bool) {
	switch attr {
	case xaVersion:
		return strconv.AppendUint(nil, ver.Number, 10), true
	case xaSHA256:
		return []byte(backend.Hex(ver.Sum)), true
	case xaAuthor:
		return []byte(ver.Prov.Principal), true
	case xaSession:
		return []byte(ver.Prov.Session), true
	case xaReason:
		return []byte(ver.Prov.Reason), true
	case xaTime:
		return ver.Time.UTC().AppendFormat(nil, time.RFC3339Nano), true
	case xaApproval:
		return []byte(ver.Prov.Approval), true
	}
	return nil, false
}

// memoryXattr is the value of one of them; ErrNoXattr for any other name.
func (n *node) memoryXattr(ctx context.Context, v *backend.View, c backend.Caller, s state, attr string) ([]byte, error) {
	none := fmt.Errorf("%s: %w", attr, backend.ErrNoXattr)
	if !strings.HasPrefix(attr, "user.") && attr != "" {
		if strings.HasPrefix(attr, "security.") || strings.HasPrefix(attr, "system.") || strings.HasPrefix(attr, "trusted.") {
			return nil, none
		}
		return nil, fmt.Errorf("%s: %w", attr, backend.ErrUnsupported)
	}
	has := false
	for _, name := range n.memoryXattrs(s) {
		has = has || name == attr
	}
	if !has {
		return nil, none
	}
	switch attr {
	case xaID:
		return []byte(s.Inode.ID.String()), nil
	case xaWrite:
		return []byte(v.Writable(ctx, c, s.Node)), nil
	}
	ver, err := n.lastVersion(ctx, v, c, s)
	if err != nil {
		return nil, err
	}
	if value, ok := versionXattr(ver, attr); ok {
		return value, nil
	}
	return nil, none
}

// lastVersion is the head's; a file that is created and not committed has the names already, as version 0 of whoever
// asks: it is seen by its own session only.
func (n *node) lastVersion(ctx context.Context, v *backend.View, c backend.Caller, s state) (store.Version, error) {
	if s.Pending == nil {
		return v.LastVersion(ctx, c, s.Node)
	}
	return store.Version{Time: s.Inode.Btime, Prov: store.Provenance{Principal: v.Principal().ID, Session: c.Session.Name,
		Reason: c.Claimed.Reason}}, nil
}
