package fusefs

import (
	"context"
	"path"
	"strconv"
	"strings"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// historyDir is .memory/history and what mirrors the tree below it: a directory for each directory and for each memory,
// those of today and those that are deleted. It is known by its id, so that a rename does not matter.
type historyDir struct{ id store.ID }

func (d historyDir) lookup(ctx context.Context, a asker, name string) (vnode, error) {
	p, err := a.view.PastChild(ctx, a.caller, d.id, name)
	return pastNode(p), err
}

func (d historyDir) list(ctx context.Context, a asker) ([]vnode, error) {
	all, err := a.view.PastEntries(ctx, a.caller, d.id)
	if err != nil {
		return nil, err
	}
	out := make([]vnode, len(all))
	for i, p := range all {
		out[i] = pastNode(p)
	}
	return out, nil
}

func pastNode(p backend.Past) vnode {
	n := vnode{name: p.Name, key: "history/" + p.ID.String(), dir: versionsDir{p.ID}}
	if p.Type == store.TypeDir {
		n.dir = historyDir{p.ID}
	}
	return n
}

// versionsDir has a file for each version of a memory, and its log.
type versionsDir struct{ id store.ID }

func (d versionsDir) lookup(ctx context.Context, a asker, name string) (vnode, error) {
	switch name {
	case "log", "log.jsonl":
		return d.log(name), nil
	}
	digits, _, _ := strings.Cut(name, ".")
	number, err := strconv.ParseUint(digits, 10, 64)
	if err != nil || number == 0 {
		return vnode{}, backend.ErrNotExist
	}
	p, ver, err := a.view.VersionOf(ctx, a.caller, d.id, number)
	if err != nil {
		return vnode{}, err
	}
	n := d.version(p, ver)
	if n.name != name {
		return vnode{}, backend.ErrNotExist
	}
	return n, nil
}

func (d versionsDir) list(ctx context.Context, a asker) ([]vnode, error) {
	p, all, err := a.view.LogOf(ctx, a.caller, d.id)
	if err != nil {
		return nil, err
	}
	out := []vnode{d.log("log"), d.log("log.jsonl")}
	for _, ver := range all {
		if backend.HasBytes(ver) {
			out = append(out, d.version(p, ver))
		}
	}
	return out, nil
}

// version is called by its number, with the extension that the memory has now.
func (d versionsDir) version(p backend.Past, ver store.Version) vnode {
	number := strconv.FormatUint(ver.Number, 10)
	ext := path.Ext(p.Path)
	if strings.HasPrefix(path.Base(p.Path), ".") && ext == path.Base(p.Path) {
		ext = "" // .bashrc has none
	}
	return vnode{name: number + ext, key: "history/" + d.id.String() + "/" + number, file: versionFile{d.id, ver.Number}}
}

func (d versionsDir) log(name string) vnode {
	return vnode{name: name, key: "history/" + d.id.String() + "/" + name, file: logFile{d.id, name == "log.jsonl"}}
}

// versionFile is one version. Its bytes never change.
type versionFile struct {
	id     store.ID
	number uint64
}

func (f versionFile) attr(ctx context.Context, a asker) (vattr, error) {
	_, ver, err := a.view.VersionOf(ctx, a.caller, f.id, f.number)
	return vattr{size: ver.Size, mtime: ver.Time, fixed: true}, err
}

func (f versionFile) open(ctx context.Context, a asker) (store.Bytes, error) {
	_, ver, err := a.view.VersionOf(ctx, a.caller, f.id, f.number)
	if err != nil {
		return nil, err
	}
	return a.view.Content(ctx, store.Head{Sum: ver.Sum, Size: ver.Size})
}

// xattrs are those of a live memory, as of then. It is not writable.
func (f versionFile) xattrs(ctx context.Context, a asker) (map[string]string, error) {
	_, ver, err := a.view.VersionOf(ctx, a.caller, f.id, f.number)
	if err != nil {
		return nil, err
	}
	out := map[string]string{xaID: ver.Memory.String(), xaWrite: "no"}
	for _, name := range versionXattrs {
		value, _ := versionXattr(ver, name)
		out[name] = string(value)
	}
	return out, nil
}

// logFile is a memory's log, newest version first, as text or JSON.
type logFile struct {
	id   store.ID
	json bool
}

func (f logFile) text(ctx context.Context, a asker) (backend.ByteContent, []store.Version, error) {
	_, all, err := a.view.LogOf(ctx, a.caller, f.id)
	if err != nil {
		return nil, nil, err
	}
	if f.json {
		b, err := backend.LogJSON(all)
		return b, all, err
	}
	return backend.LogText(all), all, nil
}

func (f logFile) attr(ctx context.Context, a asker) (vattr, error) {
	b, all, err := f.text(ctx, a)
	if err != nil || len(all) == 0 {
		return vattr{}, err
	}
	return vattr{size: b.Size(), mtime: all[0].Time}, nil
}

func (f logFile) open(ctx context.Context, a asker) (store.Bytes, error) {
	b, _, err := f.text(ctx, a)
	return b, err
}
