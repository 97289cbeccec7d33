package backend

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"memoryfs/audit"
	"memoryfs/backend/store"
	"memoryfs/policy"
)

// ImportFile is one memory of an Import, or a directory.
type ImportFile struct {
	Path    string
	Content []byte
	Dir     bool
}

// Import fills a store on behalf of the principal that owns it: policy is not asked (nobody may write organization/
// directly, and a store has to begin somewhere), which is why only the process that holds the store directory can call
// it; each memory's first version and its record say "import". Files that are there already are ErrExist.
func (m *Memory) Import(ctx context.Context, principal string, files []ImportFile) error {
	v, err := m.View(principal, policy.Attested{Mount: "import"})
	if err != nil {
		return err
	}
	c := Caller{Session: m.Session(principal, "import")}
	d := policy.Decision{Effect: policy.Allow, Rules: []string{"allow/import"}, Revision: m.policy.Revision(), ID: "import"}
	for _, f := range files {
		if err := v.importFile(ctx, c, d, f); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	return nil
}

func (v *View) importFile(ctx context.Context, c Caller, d policy.Decision, f ImportFile) error {
	segs, err := splitPath(f.Path)
	if err != nil {
		return err
	}
	if len(segs) == 0 {
		return fmt.Errorf("%q: %w", f.Path, ErrInvalidName)
	}
	dir, dirs := store.RootID, segs[:len(segs)-1]
	if f.Dir {
		dirs = segs
	}
	for i, seg := range dirs {
		if dir, err = v.importDir(ctx, c, d, dir, seg, strings.Join(segs[:i+1], "/")); err != nil {
			return err
		}
	}
	if f.Dir {
		return nil
	}
	ino, err := v.m.store.NewIno(ctx)
	if err != nil {
		return wrap(err, f.Path)
	}
	file := store.NewFile{Place: store.Place{Parent: dir, Name: segs[len(segs)-1]}, ID: v.m.store.NewID(), Ino: ino, Mode: 0o644,
		Mtime: time.Now(), Content: ByteContent(f.Content)}
	return wrap(v.change(ctx, c, d, "none", false, func(ctx context.Context, ch store.Change) error {
		ch.Kind = store.KindImport
		ch.Record = func(what store.Changed) ([]byte, error) { return v.intent(c, d, ch, what) }
		_, rev, err := v.m.store.CreateFile(ctx, file, ch)
		v.m.applier.wait(rev)
		return err
	}), f.Path)
}

func (v *View) importDir(ctx context.Context, c Caller, d policy.Decision, parent store.ID, name, path string) (store.ID, error) {
	place := store.Place{Parent: parent, Name: name}
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return store.ID{}, wrap(err, path)
	}
	defer snap.Close()
	entry, err := snap.Child(place)
	if err == nil && entry.Type != store.TypeDir {
		return store.ID{}, fmt.Errorf("%s: %w", path, ErrNotDir)
	}
	if err == nil || !errors.Is(err, store.ErrNotExist) {
		return entry.ID, wrap(err, path)
	}
	ino, err := v.m.store.NewIno(ctx)
	if err != nil {
		return store.ID{}, wrap(err, path)
	}
	var made store.Inode
	err = v.change(ctx, c, d, "none", false, func(ctx context.Context, ch store.Change) error {
		var err error
		made, _, err = v.m.store.Mkdir(ctx, place, ino, 0o755, ch)
		return err
	})
	return made.ID, wrap(err, path)
}

var _ audit.Source = source{}
