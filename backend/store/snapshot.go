package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"memoryfs/backend/kv"
)

// Snapshot is the tree at one revision. Must be closed. Safe for concurrent use.
type Snapshot struct {
	kv kv.Snapshot
	s  *Store
}

// Snapshot opens the tree as it is now.
func (s *Store) Snapshot(ctx context.Context) (*Snapshot, error) {
	p, err := s.kv.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return &Snapshot{p, s}, nil
}

// Close releases it.
func (p *Snapshot) Close() { p.kv.Close() }

// Rev is the revision it shows.
func (p *Snapshot) Rev() kv.Rev { return p.kv.Rev() }

// Rev is the revision of now.
func (s *Store) Rev(ctx context.Context) (kv.Rev, error) {
	p, err := s.kv.Snapshot(ctx)
	if err != nil {
		return 0, err
	}
	defer p.Close()
	return p.Rev(), nil
}

func (p *Snapshot) get(key []byte) (kv.Entry, error) {
	e, err := p.kv.Get(key)
	if err != nil {
		return kv.Entry{}, err
	}
	return e[0], nil
}

// Inode loads an inode, gone ones too. ErrNotExist.
func (p *Snapshot) Inode(id ID) (Inode, error) {
	e, err := p.kv.Get(keyInode(id), keyTouch(id))
	if err != nil {
		return Inode{}, err
	}
	if e[0].Rev == 0 {
		return Inode{}, fmt.Errorf("inode %s: %w", id, ErrNotExist)
	}
	in, err := decodeInode(id, e[0].Value)
	if err == nil && in.Type == TypeDir && len(e[1].Value) == 8 {
		if t := time.Unix(0, int64(binary.BigEndian.Uint64(e[1].Value))); t.After(in.Ctime) {
			in.Ctime = t
			if t.After(in.Mtime) {
				in.Mtime = t
			}
		}
	}
	return in, err
}

// Child finds a name: one get. ErrNotExist.
func (p *Snapshot) Child(at Place) (Dentry, error) {
	d, _, err := p.child(at)
	return d, err
}

func (p *Snapshot) child(at Place) (Dentry, kv.Rev, error) {
	e, err := p.get(keyPlace(at))
	if err != nil {
		return Dentry{}, 0, err
	}
	if e.Rev == 0 {
		return Dentry{}, 0, fmt.Errorf("%q: %w", at.Name, ErrNotExist)
	}
	d, err := decodeDentry(at.Name, e.Value)
	return d, e.Rev, err
}

// Children lists up to limit names of one owner's space, after the name after, in byte order.
func (p *Snapshot) Children(parent ID, owner, after string, limit int) ([]Dentry, error) {
	prefix := prefixPlace(parent, owner)
	var from []byte
	if after != "" {
		from = cat(prefix, []byte(after))
	}
	list, err := p.kv.List(prefix, from, limit)
	if err != nil {
		return nil, err
	}
	out := make([]Dentry, len(list))
	for i, e := range list {
		if out[i], err = decodeDentry(string(e.Key[len(prefix):]), e.Value); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Head is a file's head. ErrNotExist for what is deleted.
func (p *Snapshot) Head(id ID) (Head, error) {
	h, _, err := p.head(id)
	return h, err
}

func (p *Snapshot) head(id ID) (Head, kv.Rev, error) {
	e, err := p.get(keyHead(id))
	if err != nil {
		return Head{}, 0, err
	}
	if e.Rev == 0 {
		return Head{}, 0, fmt.Errorf("head of %s: %w", id, ErrNotExist)
	}
	h, err := decodeHead(id, e.Value)
	return h, e.Rev, err
}

// Version loads one version. ErrNotExist.
func (p *Snapshot) Version(id ID, n uint64) (Version, error) {
	e, err := p.get(keyVersion(id, n))
	if err != nil {
		return Version{}, err
	}
	if e.Rev == 0 {
		return Version{}, fmt.Errorf("version %d of %s: %w", n, id, ErrNotExist)
	}
	return decodeVersion(id, n, e.Value)
}

// LastVersion is the number of a memory's newest version, delete versions included; 0 if it has none.
func (p *Snapshot) LastVersion(id ID) (uint64, error) {
	if h, err := p.Head(id); err == nil {
		return h.Version, nil
	} else if !errors.Is(err, ErrNotExist) {
		return 0, err
	}
	last := uint64(0)
	for {
		page, err := p.kv.List(prefixVersion(id), keyVersion(id, last), pageSize)
		if err != nil {
			return 0, err
		}
		for _, e := range page {
			_, last, _ = parseVersion(e.Key)
		}
		if len(page) < pageSize {
			return last, nil
		}
	}
}

const pageSize = 512

// Versions lists up to limit versions, newest first, with numbers below before (0: from the newest).
func (p *Snapshot) Versions(id ID, before uint64, limit int) ([]Version, error) {
	if before == 0 {
		last, err := p.LastVersion(id)
		if err != nil {
			return nil, err
		}
		before = last + 1
	}
	var out []Version
	for n := before - 1; n >= 1 && len(out) < limit; n-- {
		v, err := p.Version(id, n)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

const maxDepth = 1 << 12 // of a path; deeper means a cycle

// Path is where an inode hangs: "a/b", "" for the root. ErrNotExist for what is unlinked.
func (p *Snapshot) Path(id ID) (string, error) {
	var segs []string
	for depth := 0; id != RootID; depth++ {
		in, err := p.Inode(id)
		if err != nil {
			return "", err
		}
		if in.Gone || depth > maxDepth {
			return "", fmt.Errorf("path of %s: %w", id, ErrNotExist)
		}
		segs = append(segs, in.Name)
		id = in.Parent
	}
	for i, j := 0, len(segs)-1; i < j; i, j = i+1, j-1 {
		segs[i], segs[j] = segs[j], segs[i]
	}
	return strings.Join(segs, "/"), nil
}

// LastPath is Path, also for a memory or directory that is deleted: the last one it had, under the names that the
// directories above it have today.
func (p *Snapshot) LastPath(id ID) (string, error) {
	var segs []string
	for depth := 0; id != RootID; depth++ {
		in, err := p.former(id)
		if err != nil {
			return "", err
		}
		if depth > maxDepth {
			return "", fmt.Errorf("path of %s: %w", id, ErrCorrupt)
		}
		segs = append(segs, in.Name)
		id = in.Parent
	}
	slices.Reverse(segs)
	return strings.Join(segs, "/"), nil
}

// former is Inode, also of a directory that is removed.
func (p *Snapshot) former(id ID) (Inode, error) {
	in, err := p.Inode(id)
	if !errors.Is(err, ErrNotExist) {
		return in, err
	}
	e, err := p.get(keyFormerDir(id))
	if err != nil {
		return in, err
	}
	if e.Rev == 0 {
		return in, fmt.Errorf("inode %s: %w", id, ErrNotExist)
	}
	return decodeInode(id, e.Value)
}

// Former is something that was last seen under a name and is deleted.
type Former struct {
	Name string
	ID   ID
	Type Type // TypeFile or TypeDir
}

// Deleted lists what was last seen under a name, the one that was made last first.
func (p *Snapshot) Deleted(at Place) ([]Former, error) {
	out, err := p.deleted(prefixDeleted(at), at.Parent)
	slices.Reverse(out) // ids are in order of their making
	return out, err
}

// DeletedIn lists what was last seen in a directory, which may itself be deleted, by name and then by age.
func (p *Snapshot) DeletedIn(parent ID) ([]Former, error) {
	return p.deleted(prefixDeletedIn(parent), parent)
}

func (p *Snapshot) deleted(prefix []byte, parent ID) ([]Former, error) {
	var out []Former
	var after []byte
	for {
		page, err := p.kv.List(prefix, after, pageSize)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			after = e.Key
			rest := e.Key[len(prefixDeletedIn(parent)):]
			n := len(rest) - 17 // name, NUL, id
			if n < 1 || rest[n] != 0 {
				return nil, fmt.Errorf("key %q: %w", e.Key, ErrCorrupt)
			}
			f := Former{Name: string(rest[:n]), ID: ID(rest[n+1:]), Type: TypeFile}
			if len(e.Value) == 1 {
				f.Type = Type(e.Value[0])
			}
			out = append(out, f)
		}
		if len(page) < pageSize {
			return out, nil
		}
	}
}
