package badgerkv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"memoryfs/backend/kv"
)

// smallVolume mounts a tmpfs of 64 MiB. It needs root, and says so where it skips; in CI it may not skip.
func smallVolume(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("memoryfs-test", dir, "tmpfs", 0, "size=64m")
	if err != nil && os.Getenv("CI") == "" {
		t.Skipf("a full disk is tested on a small tmpfs, and mounting one needs root: %v", err)
	}
	if err != nil {
		t.Fatalf("mount a tmpfs (CI must run this as root): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// fillVolume runs a child that commits until ErrNoSpace, and returns what it was answered. The child must live.
func fillVolume(t *testing.T, dir, name string, limit int) map[string]kv.Rev {
	t.Helper()
	t.Setenv("KV_LIMIT", strconv.Itoa(limit))
	cmd := spawn(t, "fill", dir, name)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the child that filled the volume: %v", err)
	}
	if !bytes.HasSuffix(out, []byte("full\n")) {
		t.Fatalf("the child did not come to a full volume: %.200s", out)
	}
	return acked(bytes.NewReader(out))
}

func TestFullVolume(t *testing.T) {
	for _, limit := range []int{4 << 10, 64 << 10, maxValue} {
		t.Run(fmt.Sprint("Values", limit), func(t *testing.T) {
			volumeDir := smallVolume(t)
			dir := filepath.Join(volumeDir, "store")
			all := fillVolume(t, dir, "a", limit)
			if len(all) == 0 {
				t.Fatal("nothing fits")
			}
			for round := range 2 { // reopening may not eat the reserve
				for key, rev := range fillVolume(t, dir, fmt.Sprint("b", round), limit) {
					all[key] = rev
				}
				s := open(t, dir, Options{})
				checkAll(t, s, all, limit)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
			var bytes int
			for key := range all {
				bytes += len(value(key, limit))
			}
			t.Logf("%d values, %d MiB, fit a volume of 64 MiB", len(all), bytes>>20)
			if bytes < 12<<20 {
				t.Errorf("only %d bytes fit a volume of 64 MiB", bytes)
			}
		})
	}
}

// What a user deletes on a full volume can be used again, without their having to do more.
func TestFullVolumeCanBeFreed(t *testing.T) {
	dir := filepath.Join(smallVolume(t), "store")
	const limit = 16 << 10
	all := fillVolume(t, dir, "a", limit)
	s := open(t, dir, Options{})
	ctx := context.Background()
	if _, err := put(s, "more", make([]byte, maxValue)); !errors.Is(err, kv.ErrNoSpace) {
		t.Fatalf("a large value on a full volume: %v", err)
	}
	if u, err := s.Usage(); err != nil || u.Free > maxValue {
		t.Fatalf("usage of a full volume: %+v, %v", u, err)
	}
	var deleted int
	kept := map[string]kv.Rev{}
	for key, rev := range all {
		if deleted++; deleted%10 == 0 {
			kept[key] = rev
			continue
		}
		// As an unlink: what goes, and a small record of it.
		if _, err := s.Commit(ctx, nil, []kv.Op{kv.Delete([]byte(key)), kv.Put([]byte("intent"), make([]byte, 200))}); err != nil {
			t.Fatalf("delete %d of %d on a full volume: %v", deleted, len(all), err)
		}
	}
	end := time.Now().Add(20 * time.Second)
	for i := 0; i < 12; {
		_, err := put(s, fmt.Sprint("new", i), value("new", maxValue))
		switch {
		case err == nil:
			i++
		case !errors.Is(err, kv.ErrNoSpace) || time.Now().After(end):
			t.Fatalf("value %d after most was deleted: %v", i, err)
		default:
			time.Sleep(50 * time.Millisecond)
		}
	}
	checkAll(t, s, kept, limit)
}

// Another program fills the volume to the last byte. The store refuses and reads, and once there is room again it goes on.
func TestVolumeFilledByAnother(t *testing.T) {
	volumeDir := smallVolume(t)
	dir := filepath.Join(volumeDir, "store")
	s := open(t, dir, Options{})
	all := map[string]kv.Rev{}
	for i := range 200 {
		key := fmt.Sprint("k", i)
		rev, err := put(s, key, value(key, 16<<10))
		if err != nil {
			t.Fatal(err)
		}
		all[key] = rev
	}
	other := filepath.Join(volumeDir, "other")
	if err := fillWith(other); err != nil {
		t.Fatal(err)
	}
	if _, err := put(s, "more", nil); !errors.Is(err, kv.ErrNoSpace) {
		t.Fatalf("commit: %v", err)
	}
	if _, err := s.Commit(context.Background(), nil, []kv.Op{kv.Delete([]byte("k1"))}); !errors.Is(err, kv.ErrNoSpace) {
		t.Fatalf("delete: %v", err)
	}
	checkAll(t, s, all, 16<<10)

	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	if _, err := put(s, "more", nil); err != nil {
		t.Fatalf("commit once there is room: %v", err)
	}
	checkAll(t, s, all, 16<<10)
}

// Badger writes its memtable out when it closes and when it opens; on a full volume both would kill the process.
func TestCloseAndOpenOnAVolumeFilledByAnother(t *testing.T) {
	volumeDir := smallVolume(t)
	dir := filepath.Join(volumeDir, "store")
	out, err := spawn(t, "close-full", dir, "").Output()
	if err != nil || !bytes.HasSuffix(out, []byte("refused\n")) {
		t.Fatalf("the child that closed on a full volume: %v: %.200s", err, out)
	}
	if _, err := Open(dir, Options{}); !errors.Is(err, kv.ErrNoSpace) {
		t.Fatalf("open on a full volume: %v", err)
	}
	if err := os.Remove(filepath.Join(volumeDir, "other")); err != nil {
		t.Fatal(err)
	}
	checkAll(t, open(t, dir, Options{}), acked(bytes.NewReader(out)), 16<<10)
}
