package badgerkv

import (
	"context"
	"testing"

	"memoryfs/backend/kv"
	"memoryfs/backend/kv/kvtest"
)

// open is closed at the end of the test.
func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatalf("open %s: %v", dir, err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func put(s kv.Store, key string, value []byte) (kv.Rev, error) {
	return s.Commit(context.Background(), nil, []kv.Op{kv.Put([]byte(key), value)})
}

func TestConformanceOnDisk(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Store { return open(t, t.TempDir(), Options{}) })
}

func TestConformanceInMemory(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.Store { return open(t, "", Options{InMemory: true}) })
}
