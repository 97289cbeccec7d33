package badgerkv

import (
	"fmt"

	"memoryfs/backend/kv"
)

// Close answers the commits that were queued, refuses later ones, and ends snapshots and watchers (ErrClosed).
// Only the first call does something. kv.ErrNoSpace: the volume is so full that Badger, which writes its memtable out
// when it closes, would be killed; its files are left open until the process ends. Nothing is lost by it: the memtable
// is in the log, and the next Open takes it over.
func (s *Store) Close() error {
	var err error
	s.once.Do(func() { err = s.close() })
	return err
}

func (s *Store) close() error {
	s.gate.Lock()
	s.closed.Store(true)
	close(s.queue)
	s.gate.Unlock()
	close(s.closing)
	s.done.Wait()

	s.mu.Lock()
	s.ring.cond.Broadcast()
	s.mu.Unlock()

	if err := s.roomToFlush(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	if s.failed.Load() {
		// Badger may have no memtable, and would panic on it. What it acknowledged is in its logs.
		return fmt.Errorf("close: %w", errFailed)
	}
	err := s.db.Close()
	s.unlock()
	if err != nil {
		return fmt.Errorf("close: %w", translate(err))
	}
	return nil
}

// use holds off Close while fn reads from Badger.
func (s *Store) use(fn func() error) error {
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.closed.Load() {
		return kv.ErrClosed
	}
	if s.failed.Load() {
		return unsent(errFailed)
	}
	return fn()
}
