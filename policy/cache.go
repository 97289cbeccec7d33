package policy

import (
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// key is all that a decision depends on, in raw bytes. What the policy does not read is left out.
type key struct {
	caller, path string
	extra        string // what few requests or policies need: see snapshot.extra
	action       uint8
	dir          bool
}

// cache of answers: a table of fixed size, each key in one of the ways of its set. Reading takes no lock; a full set
// loses an arbitrary entry. An entry is never wrong, for the snapshot that made it is the one that asks.
type cache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[entry]

	mu       sync.Mutex
	interned map[string]*answer // guarded by mu
}

type entry struct {
	hash   uint64
	key    key
	answer *answer
}

const (
	ways       = 4
	cacheSlots = 1 << 18 // 100,000 notes, listed and read by one principal, and some room; at most 40 MB
	maxAnswers = 1 << 12 // distinct answers kept once; a policy has a few dozen
)

func newCache() *cache {
	return &cache{seed: maphash.MakeSeed(), slots: make([]atomic.Pointer[entry], cacheSlots), interned: map[string]*answer{}}
}

func (c *cache) hash(k *key) uint64 {
	h := maphash.String(c.seed, k.path) ^ (maphash.String(c.seed, k.caller)+uint64(k.action))*0x9e3779b97f4a7c15
	if k.dir {
		h ^= 0xff51afd7ed558ccd
	}
	if k.extra != "" {
		h ^= maphash.String(c.seed, k.extra) * 0xc4ceb9fe1a85ec53
	}
	return h ^ h>>32
}

func (c *cache) set(h uint64) []atomic.Pointer[entry] {
	i := h & (cacheSlots - 1) &^ (ways - 1)
	return c.slots[i : i+ways]
}

func (c *cache) get(h uint64, k *key) *answer {
	set := c.set(h)
	for i := range set {
		if e := set[i].Load(); e != nil && e.hash == h && e.key == *k {
			return e.answer
		}
	}
	return nil
}

// put keeps an answer. The strings of k are copied: they may be pieces of a buffer of the caller's.
func (c *cache) put(h uint64, k key, a *answer) {
	k.path, k.caller = strings.Clone(k.path), strings.Clone(k.caller)
	e := &entry{hash: h, key: k, answer: c.intern(a)}
	set := c.set(h)
	for i := range set {
		if set[i].CompareAndSwap(nil, e) {
			return
		}
	}
	set[h>>62].Store(e)
}

// intern returns the one copy of an answer.
func (c *cache) intern(a *answer) *answer {
	o := a.obligations
	id := strings.Join(append(a.rules[:len(a.rules):len(a.rules)], a.cause, a.effect.String(), strconv.FormatBool(o.Reason),
		strconv.FormatBool(o.AuditRead), strconv.FormatBool(o.FreshBase), strconv.FormatInt(o.MaxBytes, 10)), "\x00")
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.interned[id]; known != nil {
		return known
	}
	if len(c.interned) < maxAnswers {
		c.interned[id] = a
	}
	return a
}
