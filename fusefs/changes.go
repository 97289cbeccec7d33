package fusefs

import (
	"context"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// changesFile is .memory/changes: what others changed since the caller's session last read it to its end.
type changesFile struct{}

// changesText is its bytes with what they were made of.
type changesText struct {
	backend.ByteContent
	set backend.ChangeSet
}

func (changesFile) attr(ctx context.Context, a asker) (vattr, error) {
	set, err := a.view.Changes(ctx, a.caller)
	return vattr{size: int64(len(set.Text()))}, err
}

func (changesFile) open(ctx context.Context, a asker) (store.Bytes, error) {
	set, err := a.view.Changes(ctx, a.caller)
	return changesText{backend.ByteContent(set.Text()), set}, err
}

func (changesFile) finished(ctx context.Context, a asker, content store.Bytes) error {
	return a.view.SawChanges(ctx, a.caller, content.(changesText).set)
}
