package audit

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// smallVolume mounts a tmpfs. It needs root, and says so where it skips; in CI it may not skip.
func smallVolume(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	err := unix.Mount("memoryfs-test", dir, "tmpfs", 0, options)
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

// TestFullVolume: nothing may be changed while the log cannot be written; it heals when there is room, by the next record
// or by itself; refusals of the time between are kept, and the log says how much is not in it.
func TestFullVolume(t *testing.T) {
	for _, how := range []string{"NextRecord", "ByItself", "Restart"} {
		t.Run(how, func(t *testing.T) {
			vol, src, ctx := smallVolume(t, "size=512k"), &fakeStore{}, context.Background()
			log, ballast := filepath.Join(vol, "log"), filepath.Join(vol, "ballast")
			l := open(t, log, src, Options{SegmentBytes: 100 << 10})
			must(t, os.WriteFile(ballast, make([]byte, 200<<10), 0o600))
			var err error
			acked := 0
			for ; acked < 10000 && err == nil; acked++ {
				_, err = l.Append(ctx, Record{Kind: "mount", Op: strings.Repeat("x", 1000)})
			}
			if !errors.Is(err, ErrUnavailable) || !errors.Is(err, unix.ENOSPC) || !errors.Is(l.Healthy(), ErrUnavailable) {
				t.Fatalf("%v, %v", err, l.Healthy())
			}
			src.commit(t, "m", 1) // was under way
			l.Refuse(refusal("a", "while it is full"))
			if err := l.Sync(ctx, src.rev); !errors.Is(err, ErrUnavailable) {
				t.Fatal(err)
			}
			if how == "Restart" { // with the disk still full
				if err := l.Close(ctx); !errors.Is(err, ErrUnavailable) {
					t.Fatal(err)
				}
				l = open(t, log, src, Options{SegmentBytes: 100 << 10})
				if _, err := l.Append(ctx, Record{Kind: "read", Op: strings.Repeat("x", 10000)}); !errors.Is(err, ErrUnavailable) {
					t.Fatal(err)
				}
				l.Refuse(refusal("a", "while it is full")) // the first one ended with its process
			}
			must(t, os.Remove(ballast))
			if how == "NextRecord" {
				_, err = l.Append(ctx, Record{Kind: "mount", Op: "again"})
				must(t, err)
			} else {
				waitHealthy(t, l)
			}
			must(t, l.Healthy())
			must(t, l.Sync(ctx, src.rev))
			must(t, l.Close(ctx))
			ops := map[string]int{}
			for _, r := range all(t, log) {
				ops[r.Kind+" "+r.Errno]++
			}
			if ops["mount "] < acked-1 || ops["recover ENOSPC"] != 1 || ops["refusal EACCES"] != 1 || ops["change "] != 1 {
				t.Fatalf("%d were acknowledged: %v", acked-1, ops)
			}
		})
	}
}

// TestTornLineOnAFullVolume: it is cut together with the note of it, not before.
func TestTornLineOnAFullVolume(t *testing.T) {
	vol, src, ctx := smallVolume(t, "size=256k"), &fakeStore{}, context.Background()
	log, ballast := filepath.Join(vol, "log"), filepath.Join(vol, "ballast")
	l := open(t, log, src, Options{})
	_, err := l.Append(ctx, Record{Kind: "read", Op: strings.Repeat("x", 4080-len(unnumbered))})
	must(t, err)
	must(t, l.Close(ctx))
	file := filepath.Join(log, segmentName(1))
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString("torn")
	must(t, err)
	must(t, f.Close())
	if err := os.WriteFile(ballast, make([]byte, 256<<10), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	// where the note needs a block of its own it cannot be written yet
	l = open(t, log, src, Options{})
	b, err := os.ReadFile(file)
	must(t, err)
	if l.Healthy() != nil && !strings.HasSuffix(string(b), "torn") && !strings.Contains(string(b), "re") {
		t.Fatalf("cut without a note: %q", b[len(b)-80:])
	}
	must(t, os.Remove(ballast))
	waitHealthy(t, l)
	must(t, l.Close(ctx))
	if got := all(t, log); got[len(got)-1].Op != "cut" || !strings.HasPrefix(got[len(got)-1].Cause, "4 bytes") && len(got) < 3 {
		t.Fatalf("%+v", got)
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	ctx, src := context.Background(), &fakeStore{}
	if os.Geteuid() == 0 { // whom modes do not stop
		vol := smallVolume(t, "size=256k")
		log := filepath.Join(vol, "log")
		must(t, open(t, log, src, Options{}).Close(ctx))
		must(t, unix.Mount("", vol, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
		if _, err := Open(ctx, log, src, Options{}); !errors.Is(err, unix.EROFS) {
			t.Fatal(err)
		}
		if _, err := Open(ctx, filepath.Join(vol, "other"), src, Options{}); !errors.Is(err, unix.EROFS) {
			t.Fatal(err)
		}
		must(t, Scan(ctx, log, 1, func([]byte, Record) error { return nil }))
		return
	}
	dir := filepath.Join(t.TempDir(), "log")
	l := open(t, dir, src, Options{SegmentBytes: 300})
	must(t, os.Chmod(dir, 0o500))
	defer func() { _ = exec.Command("chmod", "700", dir).Run() }()
	var err error
	for i := 0; i < 10 && err == nil; i++ {
		_, err = l.Append(ctx, Record{Kind: "read", Op: strings.Repeat("x", 100)})
	}
	if !errors.Is(err, unix.EACCES) || !errors.Is(l.Healthy(), ErrUnavailable) {
		t.Fatal(err)
	}
	must(t, os.Chmod(dir, 0o700))
	waitHealthy(t, l)
	must(t, l.Close(ctx))
}
