package badgerkv

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"memoryfs/backend/kv"
)

// TestEmptyLogFilesOfAKilledProcess do not keep the store shut.
func TestEmptyLogFilesOfAKilledProcess(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		s, err := Open(dir, Options{})
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if _, err := s.Commit(context.Background(), nil, []kv.Op{kv.Put([]byte{byte(round)}, []byte("v"))}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"000090.vlog", "00090.mem"} {
			if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}
