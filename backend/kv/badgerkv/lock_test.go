package badgerkv

import (
	"bufio"
	"errors"
	"testing"
)

func TestSecondOpenIsLocked(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{})
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) {
		t.Fatalf("second open in this process: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	cmd := spawn(t, "hold", dir, "")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "open\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) {
		t.Fatalf("open while another process has it: %v", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	open(t, dir, Options{})
}

// A plain Badger tool knows only Badger's own lock.
func TestOpenWhileBadgerItselfHoldsTheDirectory(t *testing.T) {
	dir := t.TempDir()
	s := &Store{dir: dir, log: open(t, "", Options{InMemory: true}).log}
	if err := s.openBadger(memtableSize); err != nil {
		t.Fatal(err)
	}
	defer s.db.Close()
	if _, err := Open(dir, Options{}); !errors.Is(err, ErrLocked) {
		t.Fatalf("open: %v", err)
	}
}
