package fusefs

import (
	"sync"
	"syscall"
	"time"

	"memoryfs/backend/store"
)

// notifier tells the kernel to drop what it caches. Requests come from the applier (one batch a commit) and are worked
// off by goroutines of its own, since a notification can wait for a lock that the kernel holds until one of our
// handlers has answered.
type notifier struct {
	m     *Mount
	tasks chan task
	done  sync.WaitGroup

	mu     sync.Mutex
	closed bool
	own    map[store.Place]int // names that a handler of this mount is changing: the kernel knows those by itself
	busy   map[store.ID]int    // directories whose kernel lock such a handler's caller holds
}

type task struct {
	node *node
	name string // "": content and attributes of node; else the entry name in it
	dir  store.ID
	wg   *sync.WaitGroup
}

const notifyWorkers = 4

func newNotifier(m *Mount) *notifier {
	n := &notifier{m: m, tasks: make(chan task, 4096), own: map[store.Place]int{}, busy: map[store.ID]int{}}
	for range notifyWorkers {
		n.done.Go(n.work)
	}
	return n
}

// begin marks the names that a handler is about to change, and their directories as locked by its caller in the kernel;
// call the returned function when the change is acknowledged.
func (n *notifier) begin(places ...store.Place) (end func()) {
	n.add(places, 1, 1)
	return func() { n.add(places, -1, -1) }
}

// mine marks a name that the kernel of this mount knows already, without a lock on its directory: a file that was created
// before and is committed now.
func (n *notifier) mine(p store.Place) (end func()) {
	n.add([]store.Place{p}, 1, 0)
	return func() { n.add([]store.Place{p}, -1, 0) }
}

func (n *notifier) add(places []store.Place, own, busy int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range places {
		if n.own[p] += own; n.own[p] == 0 {
			delete(n.own, p)
		}
		if n.busy[p.Parent] += busy; n.busy[p.Parent] == 0 {
			delete(n.busy, p.Parent)
		}
	}
}

// batch is the Subscriber: it queues what this mount's kernel may hold of the change. The channel it returns is closed
// when that is done, except for entries in a directory that a handler of this mount is changing at this moment: their
// invalidation needs a lock that is free only after that handler has answered, so nobody can wait for it.
func (n *notifier) batch(b store.Batch) <-chan struct{} {
	var wait, later []task
	wg := &sync.WaitGroup{}
	for _, id := range b.Inodes {
		if node := n.m.nodeByID(id); node != nil {
			node.changed()
			wait = append(wait, task{node: node, wg: wg})
		}
	}
	for _, e := range b.Entries {
		parent := n.m.nodeByID(e.Parent)
		if parent == nil {
			continue
		}
		e.Owner = "" // the kernel has one name, whichever space it is in
		n.mu.Lock()
		own, busy := n.own[e] > 0, n.busy[e.Parent] > 0
		n.mu.Unlock()
		if own {
			continue
		}
		wait = append(wait, task{node: parent, wg: wg})
		if parent.GetChild(e.Name) == nil {
			continue // the kernel does not know the name, and it does not keep misses
		}
		if entry := (task{node: parent, dir: e.Parent, name: e.Name}); busy {
			later = append(later, entry)
		} else {
			entry.wg = wg
			wait = append(wait, entry)
		}
	}
	n.queue(later)
	if len(wait) == 0 {
		return nil
	}
	wg.Add(len(wait))
	done := make(chan struct{})
	n.queue(wait)
	go func() {
		wg.Wait()
		close(done)
	}()
	return done
}

// queue hands tasks to the workers. When they are that far behind (a stuck kernel), it does not block the applier.
func (n *notifier) queue(tasks []task) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, t := range tasks {
		if n.closed {
			release(tasks[i:])
			return
		}
		select {
		case n.tasks <- t:
		default:
			go n.run(t)
		}
	}
}

func release(tasks []task) {
	for _, t := range tasks {
		if t.wg != nil {
			t.wg.Done()
		}
	}
}

func (n *notifier) work() {
	for t := range n.tasks {
		n.run(t)
	}
}

func (n *notifier) run(t task) {
	var errno syscall.Errno
	if t.name == "" {
		errno = t.node.NotifyContent(0, 0)
	} else {
		n.untilFree(t.dir)
		errno = t.node.NotifyEntry(t.name)
	}
	if errno != 0 && errno != syscall.ENOENT {
		n.m.log.Debug("kernel did not take a notification", "errno", errno)
	}
	if t.wg != nil {
		t.wg.Done()
	}
}

// untilFree waits until no handler of this mount changes the directory. An entry's invalidation takes the directory's
// lock in the kernel, uninterruptibly; if it waited there for a caller of ours and the daemon were killed at that
// moment, neither could ever end: the dying daemon could not close /dev/fuse, and the caller would wait for its answer
// (seen with kill -9 under load; only fusectl's abort helps then).
func (n *notifier) untilFree(dir store.ID) {
	for range 250 {
		n.mu.Lock()
		busy := n.busy[dir] > 0
		n.mu.Unlock()
		if !busy {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (n *notifier) close() {
	n.mu.Lock()
	n.closed = true
	close(n.tasks)
	n.mu.Unlock()
	n.done.Wait()
}
