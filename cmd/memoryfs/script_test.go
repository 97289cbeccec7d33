package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"memoryfs/control"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"memoryfs": main})
}

// TestScript runs testdata/script. A script whose name begins with mount needs FUSE.
func TestScript(t *testing.T) {
	fuse := true
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		fuse = false
	} else {
		f.Close()
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Condition: func(cond string) (bool, error) {
			return cond == "fuse" && (fuse || os.Getenv("CI") == "true"), nil // CI must have it, and fails without
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("MEMORYFS_STORE", e.WorkDir+"/store")
			e.Setenv("USER_ID", userName())
			return nil
		},
	})
}

func userName() string {
	name, err := login()
	if err != nil {
		return "unknown"
	}
	return name
}

// TestEveryKindHasAnExitCode.
func TestEveryKindHasAnExitCode(t *testing.T) {
	for _, kind := range control.Kinds() {
		if _, ok := exitCodes[kind]; !ok {
			t.Errorf("%s has no exit code", kind)
		}
	}
}

// TestEveryVerbHasHelp, with an example or an explanation, and refuses words that make no sense with EX_USAGE.
func TestEveryVerbHasHelp(t *testing.T) {
	for _, c := range (&app{}).root().Commands() {
		if c.Short == "" {
			t.Errorf("%s has no help", c.Name())
		}
		if slices.Contains([]string{"help", "completion"}, c.Name()) {
			continue
		}
		var errw strings.Builder
		if code := run(context.Background(), []string{c.Name(), "--nonsense"}, strings.NewReader(""), io.Discard, &errw); code != exitUsage {
			t.Errorf("%s --nonsense exits %d: %s", c.Name(), code, errw.String())
		}
	}
}
