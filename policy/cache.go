package policy

import (
	"hash/maphash"
	"sync"
)

// key is all that a decision depends on. What the policy does not read is left zero by the caller.
type key struct {
	caller, path, target, session, reason, conversation, mount string
	action                                                     Action
	dir, commit, baseNone, shared                              bool
	uid                                                        uint32
	size                                                       int64
}

// cache of decisions: shards of a map under a read-write lock. A full shard starts again: a wrong entry cannot be, for
// the snapshot that made it is the one that asks.
type cache struct {
	seed   maphash.Seed
	shards [cacheShards]shard
}

type shard struct {
	mu sync.RWMutex
	m  map[key]Decision
}

const (
	cacheShards = 32
	shardSize   = 1 << 13 // decisions
)

func (c *cache) init() { c.seed = maphash.MakeSeed() }

func (c *cache) shard(k key) *shard {
	return &c.shards[maphash.String(c.seed, k.path)%cacheShards]
}

func (c *cache) get(k key) (Decision, bool) {
	s := c.shard(k)
	s.mu.RLock()
	defer s.mu.RUnlock()
	d, ok := s.m[k]
	return d, ok
}

func (c *cache) put(k key, d Decision) {
	s := c.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.m == nil || len(s.m) >= shardSize {
		s.m = make(map[key]Decision)
	}
	s.m[k] = d
}
