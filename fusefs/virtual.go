package fusefs

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"memoryfs/backend"
	"memoryfs/backend/store"
)

// virtualName is the directory at the mount's root that readdir does not list but that can be entered by name.
const virtualName = ".memory"

//go:embed readme.md
var readme []byte

// virtualRoot is .memory itself.
func (m *Mount) virtualRoot() vnode {
	return vnode{name: virtualName, key: virtualName, dir: &fixedDir{[]vnode{
		{name: "README.md", file: madeFile(m.readme)},
		{name: "whoami", file: madeFile(m.whoami)},
		{name: "errors", file: madeFile(m.errors)},
		{name: "changes", file: changesFile{}},
		{name: "conflicts", dir: conflictsDir{}},
		{name: "history", dir: historyDir{store.RootID}},
	}}}
}

// fixedDir is a virtual directory whose names are always the same.
type fixedDir struct{ nodes []vnode }

func (d *fixedDir) lookup(_ context.Context, _ asker, name string) (vnode, error) {
	for _, n := range d.nodes {
		if n.name == name {
			return n, nil
		}
	}
	return vnode{}, fmt.Errorf("%q %w", name, backend.ErrNotExist)
}

func (d *fixedDir) list(context.Context, asker) ([]vnode, error) { return d.nodes, nil }

// madeFile is a virtual file whose bytes are made for whoever looks.
type madeFile func(asker) ([]byte, error)

func (f madeFile) attr(_ context.Context, a asker) (vattr, error) {
	b, err := f(a)
	return vattr{size: int64(len(b))}, err
}

func (f madeFile) open(_ context.Context, a asker) (store.Bytes, error) {
	b, err := f(a)
	return backend.ByteContent(b), err
}

func (m *Mount) readme(asker) ([]byte, error) { return readme, nil }

// whoami tells a caller who the mount takes it for.
func (m *Mount) whoami(a asker) ([]byte, error) {
	p, c := a.view.Principal(), a.caller
	var b bytes.Buffer
	fmt.Fprintf(&b, "principal: %s\nkind: %s\n", p.ID, p.Kind)
	for _, line := range []struct{ key, value string }{{"on_behalf_of", p.OnBehalfOf}, {"session", c.Session.Name},
		{"conversation", c.Claimed.Conversation}, {"reason", c.Claimed.Reason}} {
		if line.value != "" {
			fmt.Fprintf(&b, "%s: %s\n", line.key, line.value)
		}
	}
	fmt.Fprintf(&b, "mount: %s\nshared: %t\npolicy: %s\n", m.cfg.Dir, m.cfg.Shared, m.mem.Policy().Revision())
	return b.Bytes(), nil
}

// errors lists what this session was refused, one JSON object a line, oldest first.
func (m *Mount) errors(a asker) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, r := range a.caller.Session.Refusals() {
		if err := enc.Encode(r); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
