package badgerkv

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"memoryfs/backend/kv"
)

// A child commits and prints what it was answered, until SIGKILL. All that it was answered for is there afterwards, at
// its revision, and no revision is given twice.
func TestKillNineLosesNothingAcknowledged(t *testing.T) {
	dir := t.TempDir()
	all := map[string]kv.Rev{}
	last := kv.Rev(0)
	for round := range 10 {
		cmd := spawn(t, "write", dir, fmt.Sprint("r", round))
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(100+rand.IntN(300)) * time.Millisecond)
		cmd.Process.Kill()
		cmd.Wait() // always an error: it was killed
		if cmd.ProcessState.Exited() {
			t.Fatalf("round %d: the child ended by itself: %v", round, cmd.ProcessState)
		}
		got := acked(&out)
		for key, rev := range got {
			if rev <= last {
				t.Fatalf("round %d: %s has revision %d, %d was given before", round, key, rev, last)
			}
			all[key] = rev
		}
		s := open(t, dir, Options{})
		last = s.rev()
		checkAll(t, s, all, 8<<10)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d commits were acknowledged and are there", len(all))
	if len(all) == 0 {
		t.Fatal("no child came to commit")
	}
}

func checkAll(t *testing.T, s *Store, want map[string]kv.Rev, limit int) {
	t.Helper()
	p, err := s.Snapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for key, rev := range want {
		e, err := p.Get([]byte(key))
		if err != nil || e[0].Rev != rev || !bytes.Equal(e[0].Value, value(key, limit)) {
			t.Fatalf("%s was acknowledged at %d, and is at %d with %d bytes, %v", key, rev, e[0].Rev, len(e[0].Value), err)
		}
	}
}

// The revision counter survives what Badger's highest version does not: the last commit's tombstones are compacted away.
func TestRevisionIsNotReusedAfterTombstonesAreCompacted(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	for range 3 {
		if _, err := put(s, "k", []byte("v")); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(context.Background(), nil, []kv.Op{kv.Delete([]byte("k"))}); err != nil {
			t.Fatal(err)
		}
	}
	last := s.rev()
	for range 2 {
		if err := s.reclaim(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dir, Options{})
		if s.rev() < last {
			t.Fatalf("reopened at %d, was at %d", s.rev(), last)
		}
	}
	if rev, err := put(s, "k", nil); err != nil || rev <= last {
		t.Fatalf("revision %d after %d: %v", rev, last, err)
	}
}

// A log of a larger memtable does not fit a smaller one; Badger would exit.
func TestLogOfALargerMemtableIsReplayed(t *testing.T) {
	dir := t.TempDir()
	s := &Store{dir: dir, log: open(t, "", Options{InMemory: true}).log}
	if err := s.openBadger(4 * memtableSize); err != nil {
		t.Fatal(err)
	}
	txn := s.db.NewTransactionAt(0, true)
	if err := txn.Set(dbKey([]byte("seen")), dbValue(nil)); err != nil {
		t.Fatal(err)
	}
	if err := txn.CommitAt(1, nil); err != nil {
		t.Fatal(err)
	}
	for i := uint64(2); i < 14; i++ { // 24 MiB: more than two of ours hold
		txn := s.db.NewTransactionAt(i-1, true)
		for j := range 2 {
			key := fmt.Sprint(i, "/", j)
			if err := txn.Set(dbKey([]byte(key)), dbValue(make([]byte, maxValue))); err != nil {
				t.Fatal(err)
			}
		}
		if err := txn.CommitAt(i, nil); err != nil {
			t.Fatal(err)
		}
	}
	crashed := t.TempDir()
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil { // as it lies, like after a SIGKILL
		t.Fatal(err)
	}
	if err := s.db.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, crashed, Options{})
	if again.rev() != 13 {
		t.Fatalf("reopened at %d", again.rev())
	}
}
