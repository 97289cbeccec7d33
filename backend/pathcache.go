package backend

import (
	"context"
	"sync"

	"memoryfs/backend/store"
)

// pathCache keeps the paths of directories, so that a decision on a file does not walk up the tree. Any change to a
// cached directory's inode (a rename) empties it: directories move rarely.
type pathCache struct {
	mu  sync.RWMutex
	gen uint64
	m   map[store.ID]string
}

const maxPaths = 1 << 16

func (c *pathCache) get(id store.ID) (path string, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	path, ok = c.m[id]
	return path, ok
}

func (c *pathCache) generation() uint64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.gen
}

// put stores what was read while the generation was gen; an older reading is dropped.
func (c *pathCache) put(id store.ID, path string, gen uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gen != c.gen {
		return
	}
	if c.m == nil || len(c.m) >= maxPaths {
		c.m = map[store.ID]string{}
	}
	c.m[id] = path
}

// clear is called before and after a directory moves.
func (c *pathCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gen++
	c.m = nil
}

// touched clears the cache if one of ids is in it.
func (c *pathCache) touched(ids []store.ID) {
	c.mu.RLock()
	hit := false
	for _, id := range ids {
		if _, ok := c.m[id]; ok {
			hit = true
		}
	}
	c.mu.RUnlock()
	if hit {
		c.clear()
	}
}

// snapshot is a point in time of the store together with the generation of the path cache just before it.
type snapshot struct {
	*store.Snapshot
	m   *Memory
	gen uint64
}

func (m *Memory) snapshot(ctx context.Context) (snapshot, error) {
	gen := m.paths.generation()
	s, err := m.store.Snapshot(ctx)
	return snapshot{s, m, gen}, err
}

// dir is the path of a directory.
func (s snapshot) dir(id store.ID) (string, error) {
	if id == store.RootID {
		return "", nil
	}
	if path, ok := s.m.paths.get(id); ok {
		return path, nil
	}
	path, err := s.Path(id)
	if err != nil {
		return "", err
	}
	s.m.paths.put(id, path, s.gen)
	return path, nil
}

// path is that of any inode that is not gone.
func (s snapshot) path(n store.Inode) (string, error) {
	if n.ID == store.RootID {
		return "", nil
	}
	dir, err := s.dir(n.Parent)
	if err != nil {
		return "", err
	}
	return join(dir, n.Name), nil
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}
