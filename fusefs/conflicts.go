package fusefs

import (
	"context"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// conflictsDir is .memory/conflicts: a directory for each of the caller's stale writes.
type conflictsDir struct{}

func (conflictsDir) lookup(ctx context.Context, a asker, name string) (vnode, error) {
	if _, err := a.view.Conflict(ctx, a.caller, name); err != nil {
		return vnode{}, err
	}
	return vnode{name: name, dir: conflictDir(name)}, nil
}

func (conflictsDir) list(ctx context.Context, a asker) ([]vnode, error) {
	all, err := a.view.Conflicts(ctx, a.caller)
	if err != nil {
		return nil, err
	}
	out := make([]vnode, len(all))
	for i, k := range all {
		out[i] = vnode{name: k.Name, dir: conflictDir(k.Name)}
	}
	return out, nil
}

// conflictDir is one of them, by name.
type conflictDir string

var conflictParts = []string{"mine", "base", "theirs", "merged"}

func (d conflictDir) attr(ctx context.Context, a asker) (vattr, error) {
	k, err := a.view.Conflict(ctx, a.caller, string(d))
	return vattr{mtime: k.Time}, err
}

func (d conflictDir) lookup(ctx context.Context, a asker, name string) (vnode, error) {
	all, err := d.list(ctx, a)
	if err != nil {
		return vnode{}, err
	}
	return (&fixedDir{all}).lookup(ctx, a, name)
}

// list has those parts that there are.
func (d conflictDir) list(ctx context.Context, a asker) ([]vnode, error) {
	k, err := a.view.Conflict(ctx, a.caller, string(d))
	if err != nil {
		return nil, err
	}
	out := []vnode{{name: "README", file: conflictReadme(d)}}
	for _, part := range conflictParts {
		if _, err := a.view.ConflictPart(ctx, a.caller, k, part); err != nil {
			continue
		}
		p := conflictPart{string(d), part}
		if part == "merged" {
			out = append(out, vnode{name: part, file: mergedPart{p}})
		} else {
			out = append(out, vnode{name: part, file: p})
		}
	}
	return out, nil
}

// conflictPart is mine, base or theirs.
type conflictPart struct{ conflict, part string }

func (p conflictPart) content(ctx context.Context, a asker) (backend.Conflict, store.Bytes, error) {
	k, err := a.view.Conflict(ctx, a.caller, p.conflict)
	if err != nil {
		return k, nil, err
	}
	b, err := a.view.ConflictPart(ctx, a.caller, k, p.part)
	return k, b, err
}

func (p conflictPart) attr(ctx context.Context, a asker) (vattr, error) {
	k, b, err := p.content(ctx, a)
	if err != nil {
		return vattr{}, err
	}
	return vattr{size: b.Size(), mtime: k.Time}, nil
}

func (p conflictPart) open(ctx context.Context, a asker) (store.Bytes, error) {
	_, b, err := p.content(ctx, a)
	return b, err
}

// finished: who has read theirs, or both together, knows what won, and may save on top of it.
func (p conflictPart) finished(ctx context.Context, a asker, _ store.Bytes) error {
	if p.part != "theirs" && p.part != "merged" {
		return nil
	}
	if k, err := a.view.Conflict(ctx, a.caller, p.conflict); err == nil { // else it was dropped while being read
		a.view.SeenTheirs(a.caller, k)
	}
	return nil
}

// mergedPart can be edited: what is saved stays in the conflict until it is applied.
type mergedPart struct{ conflictPart }

func (mergedPart) check(context.Context, asker, []byte) error { return nil }

func (p mergedPart) save(ctx context.Context, a asker, content []byte) error {
	return a.view.FixConflict(ctx, a.caller, p.conflict, content)
}

// conflictReadme tells what happened and what to do.
type conflictReadme string

func (r conflictReadme) text(ctx context.Context, a asker) (backend.Conflict, []byte, error) {
	k, err := a.view.Conflict(ctx, a.caller, string(r))
	if err != nil {
		return k, nil, err
	}
	b, err := a.view.ConflictReadme(ctx, a.caller, k)
	return k, b, err
}

func (r conflictReadme) attr(ctx context.Context, a asker) (vattr, error) {
	k, b, err := r.text(ctx, a)
	return vattr{size: int64(len(b)), mtime: k.Time}, err
}

func (r conflictReadme) open(ctx context.Context, a asker) (store.Bytes, error) {
	_, b, err := r.text(ctx, a)
	return backend.ByteContent(b), err
}
