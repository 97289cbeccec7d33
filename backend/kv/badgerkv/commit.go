package badgerkv

import (
	"errors"
	"fmt"

	"memoryfs/backend/kv"
)

// errFailed: a write failed half-way, see trap 6 of the package doc.
var errFailed = errors.New("an earlier write failed; open the store again")

// commitLoop is the committer: the only goroutine that writes to Badger. It ends when the queue is closed and empty.
func (s *Store) commitLoop() {
	limit := s.db.MaxBatchSize() - groupSlack
	var first *request
	for {
		if first == nil {
			select {
			case r, open := <-s.queue:
				if !open {
					return
				}
				first = r
			case work := <-s.exclusive:
				work()
				continue
			}
		}
		var group []*request
		group, first = s.gather(first, limit)
		s.commitGroup(group)
	}
}

// gather takes what waits and fits; what does not fit begins the next group.
func (s *Store) gather(first *request, limit int64) (group []*request, next *request) {
	group = append(group, first)
	size := first.cost
	for len(group) < maxGroup {
		select {
		case r := <-s.queue:
			if r == nil { // closed and empty
				return group, nil
			}
			if size += r.cost; size > limit {
				return group, r
			}
			group = append(group, r)
		default:
			return group, nil
		}
	}
	return group, nil
}

// commitGroup decides each request in order, writes the survivors together, publishes and answers.
func (s *Store) commitGroup(group []*request) {
	rev := s.rev()
	o := newOverlay(s.db, rev)
	defer o.close()
	room := s.room(group)
	var survivors []*request
	var batches []kv.Batch
	for _, r := range group {
		if !r.state.CompareAndSwap(queued, taken) {
			continue // its caller is gone
		}
		if err := s.admit(o, r, &room); err != nil {
			r.reply <- answer{0, err}
			continue
		}
		rev++
		o.apply(r.writes, rev)
		survivors = append(survivors, r)
		batches = append(batches, kv.Batch{Rev: rev, Keys: userKeys(r.writes)})
	}
	if len(survivors) == 0 {
		return
	}
	err := o.write(rev)
	if err == nil {
		s.publish(rev, batches)
	} else if !errors.Is(err, kv.ErrTooLarge) {
		s.failed.Store(true)
		s.log.Error("a write failed, the store must be opened again", "error", err)
	}
	for i, r := range survivors {
		if err != nil {
			r.reply <- answer{0, err}
		} else {
			r.reply <- answer{batches[i].Rev, nil}
		}
	}
}

// admit evaluates one request: may anything be written, is there room, do its guards hold.
func (s *Store) admit(o *overlay, r *request, left *room) error {
	if s.failed.Load() {
		return unsent(errFailed)
	}
	for _, g := range r.guards {
		ok, err := o.holds(g)
		if err != nil {
			return unsent(translate(err))
		}
		if !ok {
			return fmt.Errorf("%w: %q", kv.ErrConflict, g.Key[1:])
		}
	}
	if !left.take(r) {
		return fmt.Errorf("%w: %d bytes wanted", kv.ErrNoSpace, r.cost)
	}
	s.size.Add(r.cost)
	s.stale.Add(r.cost)
	if r.frees {
		s.stale.Add(worthwhile)
	}
	return nil
}

// userKeys are the caller's keys of a commit. They share the request's memory, which nobody writes any more.
func userKeys(writes []write) [][]byte {
	k := make([][]byte, len(writes))
	for i, w := range writes {
		k[i] = w.key[1:]
	}
	return k
}
