package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"memoryfs/audit"
	"memoryfs/backend/store"
	"memoryfs/policy"
)

// Past is a memory, or a directory, of today or deleted.
type Past struct {
	ID   store.ID
	Type store.Type
	Name string
	Path string // of today; of a deleted one the last, under the names that the directories above it have today
	Gone bool
}

// KindWithheld stands for the kind of a version that was made where the caller may not read today: of such a version only
// the number and the time are told.
const KindWithheld store.Kind = "withheld"

// past loads one by its id and decides: by today's policy on the path of now. ErrNotExist if it may not be known.
func (v *View) past(ctx context.Context, c Caller, snap snapshot, op string, f store.Former) (Past, error) {
	p := Past{ID: f.ID, Type: f.Type, Name: f.Name}
	var err error
	if p.Path, err = snap.LastPath(f.ID); err != nil {
		return p, wrap(err, f.Name)
	}
	if _, err := snap.Path(f.ID); errors.Is(err, store.ErrNotExist) {
		p.Gone = true
	} else if err != nil {
		return p, wrap(err, p.Path)
	}
	isDir := f.Type == store.TypeDir
	if !v.mayKnow(ctx, c, p.Path, isDir, false) {
		return p, fmt.Errorf("%s: %w", p.Path, ErrNotExist)
	}
	if !isDir {
		_, err = v.require(ctx, c, query{op: op, action: policy.ActionRead, path: p.Path})
	}
	return p, err
}

// PastEntries lists the memories and directories of a directory, those that are deleted after those that are there, by
// name. Of several that were deleted under one name, or under a name that is taken again, the last one that was made has
// the name, and the others name@<id>. Nothing of it is recorded.
func (v *View) PastEntries(ctx context.Context, c Caller, dir store.ID) ([]Past, error) {
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return nil, wrap(err, "history")
	}
	defer snap.Close()
	d, err := v.past(ctx, c, snap, "history", store.Former{ID: dir, Type: store.TypeDir})
	if err != nil {
		return nil, err
	}
	var out []Past
	taken := map[string]bool{}
	add := func(f store.Former, gone bool) {
		name, path := f.Name, join(d.Path, f.Name)
		if taken[name] {
			name += "@" + f.ID.String()
		}
		if v.mayKnow(ctx, c, path, f.Type == store.TypeDir, false) {
			out = append(out, Past{ID: f.ID, Type: f.Type, Name: name, Path: path, Gone: gone})
		}
		taken[f.Name] = true
	}
	if !d.Gone {
		for after := ""; ; {
			page, err := snap.Children(dir, "", after, listPage)
			if err != nil {
				return nil, wrap(err, d.Path)
			}
			for _, e := range page {
				after = e.Name
				if e.Type != store.TypeSymlink {
					add(store.Former{Name: e.Name, ID: e.ID, Type: e.Type}, false)
				}
			}
			if len(page) < listPage {
				break
			}
		}
	}
	gone, err := snap.DeletedIn(dir)
	if err != nil {
		return nil, wrap(err, d.Path)
	}
	slices.Reverse(gone) // of one name the last made first
	for _, f := range gone {
		add(f, true)
	}
	slices.SortStableFunc(out, func(a, b Past) int { return strings.Compare(a.Name, b.Name) })
	return out, ctx.Err()
}

// PastChild finds one name as PastEntries shows it.
func (v *View) PastChild(ctx context.Context, c Caller, dir store.ID, name string) (Past, error) {
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return Past{}, wrap(err, name)
	}
	defer snap.Close()
	f, err := pastChild(snap, dir, name)
	if err != nil {
		return Past{}, wrap(err, name)
	}
	p, err := v.past(ctx, c, snap, "history", f)
	p.Name = name
	return p, err
}

func pastChild(snap snapshot, dir store.ID, name string) (store.Former, error) {
	d, err := snap.Child(store.Place{Parent: dir, Name: name})
	if err == nil && d.Type != store.TypeSymlink {
		return store.Former{Name: name, ID: d.ID, Type: d.Type}, nil
	}
	if err != nil && !errors.Is(err, store.ErrNotExist) {
		return store.Former{}, err
	}
	gone, err := snap.Deleted(store.Place{Parent: dir, Name: name})
	if err != nil {
		return store.Former{}, err
	}
	if len(gone) > 0 {
		return gone[0], nil
	}
	if base, id, ok := strings.Cut(name, "@"); ok {
		if gone, err = snap.Deleted(store.Place{Parent: dir, Name: base}); err != nil {
			return store.Former{}, err
		}
		for _, f := range gone {
			if f.ID.String() == id {
				return f, nil
			}
		}
	}
	return store.Former{}, fmt.Errorf("%q: %w", name, store.ErrNotExist)
}

// history finds the memory of a path, also one that was deleted, or whose directory was, if the caller may read there.
func (v *View) history(ctx context.Context, c Caller, op, path string) (snapshot, Past, error) {
	segs, err := splitPath(path)
	if err != nil {
		return snapshot{}, Past{}, err
	}
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return snap, Past{}, wrap(err, path)
	}
	f := store.Former{ID: store.RootID, Type: store.TypeDir}
	for _, seg := range segs {
		if f, err = pastChild(snap, f.ID, seg); err != nil {
			break
		}
	}
	var p Past
	if err == nil {
		p, err = v.past(ctx, c, snap, op, f)
	} else {
		err = wrap(err, strings.Join(segs, "/"))
	}
	if err == nil && p.Type != store.TypeFile {
		err = fmt.Errorf("%s has no versions: %w", p.Path, ErrInvalid)
	}
	if err != nil {
		snap.Close()
		return snapshot{}, p, err
	}
	return snap, p, nil
}

// withhold takes out of a version what the caller may not read today: all of it but number and time, if it was made where
// the caller may not read now.
func (v *View) withhold(ctx context.Context, c Caller, ver store.Version) store.Version {
	if !v.Readable(ctx, c, Node{Path: ver.Path}) {
		return store.Version{Memory: ver.Memory, Number: ver.Number, Time: ver.Time, Kind: KindWithheld}
	}
	if ver.From != "" && !v.Readable(ctx, c, Node{Path: ver.From}) {
		ver.From = ""
	}
	return ver
}

// versions lists up to limit of them, newest first; 0: all.
func (v *View) versions(ctx context.Context, c Caller, snap snapshot, p Past, limit int) ([]store.Version, error) {
	var all []store.Version
	before := uint64(0)
	for limit == 0 || len(all) < limit {
		want := listPage
		if limit > 0 {
			want = min(want, limit-len(all))
		}
		page, err := snap.Versions(p.ID, before, want)
		if err != nil {
			return nil, wrap(err, p.Path)
		}
		for _, ver := range page {
			all = append(all, v.withhold(ctx, c, ver))
		}
		if len(page) < want || ctx.Err() != nil {
			break
		}
		before = page[len(page)-1].Number
	}
	return all, ctx.Err()
}

// Log lists a memory's versions, newest first; limit 0: all.
func (v *View) Log(ctx context.Context, c Caller, path string, limit int) ([]store.Version, error) {
	snap, p, err := v.history(ctx, c, "log", path)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	return v.versions(ctx, c, snap, p, limit)
}

// LogOf is Log by id, for what PastEntries has listed.
func (v *View) LogOf(ctx context.Context, c Caller, id store.ID) (Past, []store.Version, error) {
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return Past{}, nil, wrap(err, id.String())
	}
	defer snap.Close()
	p, err := v.past(ctx, c, snap, "history", store.Former{ID: id, Type: store.TypeFile})
	if err != nil {
		return p, nil, err
	}
	all, err := v.versions(ctx, c, snap, p, 0)
	return p, all, err
}

// VersionOf is one version by id and number. ErrNotExist for one that is withheld or has no bytes.
func (v *View) VersionOf(ctx context.Context, c Caller, id store.ID, number uint64) (Past, store.Version, error) {
	snap, err := v.m.snapshot(ctx)
	if err != nil {
		return Past{}, store.Version{}, wrap(err, id.String())
	}
	defer snap.Close()
	p, err := v.past(ctx, c, snap, "history", store.Former{ID: id, Type: store.TypeFile})
	if err != nil {
		return p, store.Version{}, err
	}
	ver, err := snap.Version(id, number)
	if err == nil {
		if ver = v.withhold(ctx, c, ver); !HasBytes(ver) {
			err = store.ErrNotExist
		}
	}
	return p, ver, wrap(err, p.Path)
}

// HasBytes tells whether a version has a content to show.
func HasBytes(ver store.Version) bool {
	return ver.Kind != store.KindDelete && ver.Kind != KindWithheld
}

// Show returns one version and its bytes; number 0: the newest.
func (v *View) Show(ctx context.Context, c Caller, path string, number uint64) (store.Version, []byte, error) {
	snap, p, err := v.history(ctx, c, "show", path)
	if err != nil {
		return store.Version{}, nil, err
	}
	defer snap.Close()
	var ver store.Version
	if number > 0 {
		ver, err = snap.Version(p.ID, number)
	} else {
		var page []store.Version
		if page, err = snap.Versions(p.ID, 0, 1); err == nil && len(page) == 1 {
			ver = page[0]
		}
	}
	if err != nil {
		return ver, nil, wrap(err, path)
	}
	if ver = v.withhold(ctx, c, ver); ver.Kind == KindWithheld {
		return ver, nil, fmt.Errorf("version %d of %s was made where you may not read: %w", ver.Number, path, ErrDenied)
	}
	if !HasBytes(ver) {
		return ver, nil, nil
	}
	b, err := v.bytes(ctx, ver.Sum, ver.Size)
	return ver, b, err
}

// LogText is a log as people read it. The change of size is against the version before, if that is in the list.
func LogText(versions []store.Version) []byte {
	var b bytes.Buffer
	for i, ver := range versions {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "version %d  %s  %s", ver.Number, ver.Time.UTC().Format(time.RFC3339), ver.Kind)
		if ver.Kind == KindWithheld {
			b.WriteString("  (made where you may not read)\n")
			continue
		}
		fmt.Fprintf(&b, "  %d bytes", ver.Size)
		if i+1 < len(versions) && versions[i+1].Kind != KindWithheld {
			fmt.Fprintf(&b, " (%+d)", ver.Size-versions[i+1].Size)
		}
		b.WriteByte('\n')
		author := ver.Prov.Principal + " (" + ver.Prov.PrincipalKind + ")"
		if ver.Prov.OnBehalfOf != "" {
			author += " on behalf of " + ver.Prov.OnBehalfOf
		}
		path := audit.Quote(ver.Path)
		if ver.From != "" {
			path += " (from " + audit.Quote(ver.From) + ")"
		}
		sum := ""
		if HasBytes(ver) {
			sum = Hex(ver.Sum)
		}
		for _, line := range []struct{ key, value string }{{"author", author}, {"path", path}, {"session", oneLine(ver.Prov.Session)},
			{"conversation", oneLine(ver.Prov.Conversation)}, {"reason", indented(ver.Prov.Reason)}, {"approval", ver.Prov.Approval},
			{"base", ver.Prov.Base}, {"sha256", sum}} {
			if line.value != "" {
				fmt.Fprintf(&b, "  %-12s %s\n", line.key, line.value)
			}
		}
	}
	return b.Bytes()
}

// indented keeps the lines of a reason apart from those of the log.
func indented(reason string) string {
	lines := strings.Split(strings.TrimRight(reason, "\n"), "\n")
	for i := range lines {
		lines[i] = oneLine(lines[i])
	}
	return strings.Join(lines, "\n               ")
}

// LogLine is a version in log.jsonl.
type LogLine struct {
	Memory  string     `json:"memory_id"`
	Number  uint64     `json:"number"`
	Time    time.Time  `json:"time"`
	Op      store.Kind `json:"op"`
	Path    string     `json:"path,omitempty"` // quoted as in the audit log
	From    string     `json:"from,omitempty"`
	Size    int64      `json:"size"`
	SHA256  string     `json:"sha256,omitempty"`
	OpID    string     `json:"op_id,omitempty"` // finds the audit record
	*Author            // nil if the version is withheld
}

// Author is who made a version, and why.
type Author = store.Provenance

// LogJSON is a log, one JSON object a line.
func LogJSON(versions []store.Version) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, ver := range versions {
		l := LogLine{Memory: ver.Memory.String(), Number: ver.Number, Time: ver.Time, Op: ver.Kind}
		if ver.Kind != KindWithheld {
			l.Path, l.From, l.Size, l.OpID, l.Author = audit.Quote(ver.Path), audit.Quote(ver.From), ver.Size, ver.Op.String(), &ver.Prov
			if HasBytes(ver) {
				l.SHA256 = Hex(ver.Sum)
			}
		}
		if err := enc.Encode(l); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
