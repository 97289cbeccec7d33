package fusefs

import (
	"context"

	"memoryfs/backend"
)

// policyChanged drops what the kernel caches of a one-principal mount after a reload of policy or registry: all
// attributes, pages and listings, and the names that may not be known any more. Names that may still be known stay, so
// that nobody's working directory is pulled away. It runs in the reload, not in a handler.
func (m *Mount) policyChanged() {
	m.mu.Lock()
	all := make([]*node, 0, len(m.byIno))
	for _, n := range m.byIno {
		all = append(all, n)
	}
	m.mu.Unlock()
	ctx := context.Background()
	for _, n := range all {
		n.changed()
		n.NotifyContent(0, 0)
		id, pending := n.ident()
		if m.cfg.Shared || n == m.root || pending != nil {
			continue
		}
		if _, err := m.view.Attr(ctx, backend.Caller{}, id); err != nil {
			if name, parent := n.Parent(); parent != nil {
				parent.NotifyEntry(name)
			}
		}
	}
}
