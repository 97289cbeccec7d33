package backend

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"memoryfs/backend/store"
	"memoryfs/policy"
)

// The verbs by path, for front ends without a kernel. Paths are slash-separated and relative to the mount's root.

// splitPath cleans a path: "" and "." segments are dropped, ".." is ErrInvalidName.
func splitPath(path string) ([]string, error) {
	var segs []string
	for seg := range strings.SplitSeq(path, "/") {
		if seg == "" || seg == "." {
			continue
		}
		if err := checkName(seg); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		segs = append(segs, seg)
	}
	return segs, nil
}

// Stat finds a path.
func (v *View) Stat(ctx context.Context, c Caller, path string) (Node, error) {
	segs, err := splitPath(path)
	if err != nil {
		return Node{}, err
	}
	n, err := v.Attr(ctx, c, store.RootID)
	for _, seg := range segs {
		if err != nil {
			return n, err
		}
		if n.Inode.Type != store.TypeDir {
			return n, fmt.Errorf("%s: %w", n.Path, ErrNotDir)
		}
		n, err = v.Lookup(ctx, c, n.Inode.ID, seg)
	}
	return n, err
}

// parent finds the directory of a path and its last name.
func (v *View) parent(ctx context.Context, c Caller, path string) (Node, string, error) {
	segs, err := splitPath(path)
	if err != nil {
		return Node{}, "", err
	}
	if len(segs) == 0 {
		return Node{}, "", fmt.Errorf("the root: %w", ErrInvalid)
	}
	last := len(segs) - 1
	dir, err := v.Stat(ctx, c, strings.Join(segs[:last], "/"))
	if err == nil && dir.Inode.Type != store.TypeDir {
		err = fmt.Errorf("%s: %w", dir.Path, ErrNotDir)
	}
	return dir, segs[last], err
}

// ReadFile returns a file's bytes; the session has observed them then.
func (v *View) ReadFile(ctx context.Context, c Caller, path string) (Node, []byte, error) {
	n, err := v.Stat(ctx, c, path)
	if err != nil {
		return n, nil, err
	}
	if n, err = v.Open(ctx, c, n.Inode.ID, OpenFlags{Read: true}); err != nil {
		return n, nil, err
	}
	if n.Inode.Type != store.TypeFile {
		return n, nil, fmt.Errorf("%s: %w", n.Path, ErrInvalid)
	}
	b, err := v.bytes(ctx, n.Head.Sum, n.Head.Size)
	return n, b, err
}

func (v *View) bytes(ctx context.Context, sum store.Sum, size int64) ([]byte, error) {
	content, err := v.Content(ctx, store.Head{Sum: sum, Size: size})
	if err != nil {
		return nil, err
	}
	b := make([]byte, size)
	if size == 0 {
		return b, nil
	}
	n, err := content.ReadAt(b, 0)
	if int64(n) == size {
		return b, nil
	}
	return nil, wrap(err, "content")
}

// PutOptions of Put.
type PutOptions struct {
	IfMatch string // hex SHA-256 of the head that the writer started from; "none": must not exist; "": what the session observed
	Append  bool
	unkept  bool // a stale one is not kept as a conflict: it comes from one
}

// Put writes a whole file, or appends to it, as one version.
func (v *View) Put(ctx context.Context, c Caller, path string, o PutOptions, content []byte) (Node, error) {
	dir, name, err := v.parent(ctx, c, path)
	if err != nil {
		return Node{}, err
	}
	n, _, err := v.Create(ctx, c, dir.Inode.ID, name, 0o644, o.IfMatch == "none")
	if err != nil {
		if errors.Is(err, ErrExist) && o.IfMatch == "none" {
			return n, v.lostPut(ctx, c, n, o, store.Sum{}, content)
		}
		return n, err
	}
	if n.Pending != nil {
		return v.putNew(ctx, c, n, o, content)
	}
	// Append: whether it is stale is checked here, where its bytes can be kept.
	if n, err = v.Open(ctx, c, n.Inode.ID, OpenFlags{Write: true, Append: true}); err != nil {
		return n, err
	}
	base, err := v.putBase(c, n, o)
	if errors.Is(err, ErrStale) {
		return n, v.lostPut(ctx, c, n, o, base, content)
	}
	if err != nil {
		return n, err
	}
	r := SaveRequest{ID: n.Inode.ID, Base: base, Content: ByteContent(content), Op: "put", Unkept: o.unkept}
	if o.Append {
		r.Content, r.Append = nil, ByteContent(content)
	}
	return v.Save(ctx, c, r)
}

// putBase is the content that a put starts from; ErrStale, not recorded yet, if that is not the head. With a hash given,
// what the session observed does not matter.
func (v *View) putBase(c Caller, n Node, o PutOptions) (store.Sum, error) {
	if o.IfMatch != "" {
		raw, err := hex.DecodeString(o.IfMatch)
		if err != nil || len(raw) != len(store.Sum{}) {
			return store.Sum{}, fmt.Errorf("if-match %q is not a SHA-256 in hex: %w", o.IfMatch, ErrInvalid)
		}
		if store.Sum(raw) != n.Head.Sum {
			return store.Sum(raw), ErrStale
		}
	} else if !o.Append {
		if _, _, err := v.base(c, n); err != nil {
			return c.Session.seen(c.Proc, n.Inode.ID), err
		}
	}
	return n.Head.Sum, nil
}

func (v *View) lostPut(ctx context.Context, c Caller, n Node, o PutOptions, base store.Sum, content []byte) error {
	return v.lost(ctx, c, LostWrite{Memory: n.Inode.ID, Path: n.Path, Op: "put", Base: base, Mine: ByteContent(content),
		Unkept: o.unkept}, policy.Decision{Revision: v.m.policy.Revision()})
}

func (v *View) putNew(ctx context.Context, c Caller, n Node, o PutOptions, content []byte) (Node, error) {
	if o.IfMatch != "" && o.IfMatch != "none" {
		v.m.GiveUp(n.Pending)
		return n, fmt.Errorf("%s: %w", n.Path, ErrNotExist)
	}
	saved, err := v.Save(ctx, c, SaveRequest{ID: n.Inode.ID, Pending: n.Pending, Content: ByteContent(content), Op: "put"})
	if err != nil {
		v.m.GiveUp(n.Pending)
	}
	return saved, err
}

// List returns the entries of a directory, or the file itself.
func (v *View) List(ctx context.Context, c Caller, path string) ([]Node, error) {
	n, err := v.Stat(ctx, c, path)
	if err != nil {
		return nil, err
	}
	if n.Inode.Type != store.TypeDir {
		return []Node{n}, nil
	}
	names, err := v.ReadDir(ctx, c, n.Inode.ID)
	if err != nil {
		return nil, err
	}
	nodes := make([]Node, 0, len(names))
	for _, d := range names {
		child, err := v.Lookup(ctx, c, n.Inode.ID, d.Name)
		if errors.Is(err, ErrNotExist) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, child)
	}
	return nodes, nil
}

// Remove removes a file, a symlink or an empty directory.
func (v *View) Remove(ctx context.Context, c Caller, path string) error {
	dir, name, err := v.parent(ctx, c, path)
	if err != nil {
		return err
	}
	n, err := v.Lookup(ctx, c, dir.Inode.ID, name)
	if err != nil {
		return err
	}
	if n.Inode.Type == store.TypeDir {
		_, err = v.Rmdir(ctx, c, dir.Inode.ID, name)
	} else {
		_, err = v.Unlink(ctx, c, dir.Inode.ID, name)
	}
	return err
}

// Move renames; if to is a directory, into it.
func (v *View) Move(ctx context.Context, c Caller, from, to string) error {
	fromDir, fromName, err := v.parent(ctx, c, from)
	if err != nil {
		return err
	}
	if n, err := v.Stat(ctx, c, to); err == nil && n.Inode.Type == store.TypeDir {
		to = join(n.Path, fromName)
	}
	toDir, toName, err := v.parent(ctx, c, to)
	if err != nil {
		return err
	}
	_, err = v.Rename(ctx, c, fromDir.Inode.ID, fromName, toDir.Inode.ID, toName, false)
	return err
}

// MkdirAll makes a directory and those above it.
func (v *View) MkdirAll(ctx context.Context, c Caller, path string) error {
	segs, err := splitPath(path)
	if err != nil {
		return err
	}
	n, err := v.Attr(ctx, c, store.RootID)
	for _, seg := range segs {
		if err != nil {
			return err
		}
		dir := n.Inode.ID
		if n, err = v.Lookup(ctx, c, dir, seg); errors.Is(err, ErrNotExist) {
			n, err = v.Mkdir(ctx, c, dir, seg, 0o755)
		}
		if err == nil && n.Inode.Type != store.TypeDir {
			err = fmt.Errorf("%s: %w", n.Path, ErrNotDir)
		}
	}
	return err
}
