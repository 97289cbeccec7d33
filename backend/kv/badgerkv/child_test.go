package badgerkv

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"memoryfs/backend/kv"
)

// TestMain is also the entry of the child processes: a test that may end by SIGKILL or SIGBUS runs there.
func TestMain(m *testing.M) {
	if mode := os.Getenv("KV_CHILD"); mode != "" {
		if err := child(mode, os.Getenv("KV_DIR"), os.Getenv("KV_ARG")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func spawn(t testing.TB, mode, dir, arg string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "KV_CHILD="+mode, "KV_DIR="+dir, "KV_ARG="+arg)
	cmd.Stderr = os.Stderr
	return cmd
}

// acked is what a child printed: the revision of each key that it was answered for.
func acked(r io.Reader) map[string]kv.Rev {
	out := map[string]kv.Rev{}
	for sc := bufio.NewScanner(r); sc.Scan(); {
		var key string
		var rev kv.Rev
		if n, _ := fmt.Sscanf(sc.Text(), "ack %s %d", &key, &rev); n == 2 {
			out[key] = rev
		}
	}
	return out
}

// value is what belongs to a key: incompressible, and of a length that the key decides.
func value(key string, limit int) []byte {
	var seed [32]byte
	copy(seed[:], key)
	r := rand.NewChaCha8(seed)
	b := make([]byte, 1+r.Uint64()%uint64(limit))
	for i := 0; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], r.Uint64())
	}
	return b
}

func child(mode, dir, arg string) error {
	s, err := Open(dir, Options{})
	if mode == "open-damaged" { // a child, since Badger leaks two goroutines when its Open fails
		if errors.Is(err, kv.ErrCorrupt) {
			return nil
		}
		return fmt.Errorf("open of a damaged store: %w", err)
	}
	if err != nil {
		return err
	}
	switch mode {
	case "hold":
		fmt.Println("open")
		_, err = io.Copy(io.Discard, os.Stdin) // until the parent is done
	case "write":
		err = childWrite(s, arg, 4, 8<<10)
	case "close-full":
		return childCloseFull(s, dir)
	case "fill":
		limit, _ := strconv.Atoi(os.Getenv("KV_LIMIT"))
		err = childWrite(s, arg, 2, limit)
		if errors.Is(err, kv.ErrNoSpace) {
			fmt.Println("full")
			err = nil
		}
	}
	return errors.Join(err, s.Close())
}

// childWrite commits until an error, or a SIGKILL, and prints what it was answered.
func childWrite(s *Store, name string, writers, limit int) error {
	var mu sync.Mutex
	var first error
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%s/%d/%d", name, w, i)
				rev, err := put(s, key, value(key, limit))
				mu.Lock()
				if err == nil {
					fmt.Printf("ack %s %d\n", key, rev)
				} else if first == nil {
					first = err
				}
				stop := first != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	wg.Wait()
	return first
}

// childCloseFull closes on a volume without a free byte. It says "refused" if that was refused; a SIGBUS says nothing.
func childCloseFull(s *Store, dir string) error {
	for i := range 200 {
		key := fmt.Sprint("k", i)
		rev, err := put(s, key, value(key, 16<<10))
		if err != nil {
			return err
		}
		fmt.Printf("ack %s %d\n", key, rev)
	}
	if err := fillWith(filepath.Join(dir, "..", "other")); err != nil {
		return err
	}
	if err := s.Close(); !errors.Is(err, kv.ErrNoSpace) {
		return fmt.Errorf("close on a full volume: %w", err)
	}
	fmt.Println("refused")
	return nil
}

// fillWith writes a file until the volume has no free byte.
func fillWith(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for block := make([]byte, 4<<10); err == nil; {
		_, err = f.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	return nil
}
