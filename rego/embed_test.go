package rego

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What init copies out is this folder: every .rego file, with its tests, and nothing else.
func TestFilesAreTheFolder(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Glob("*.rego")
	if err != nil || len(here) != len(files) || files["authz.rego"] == nil || files["authz_test.rego"] == nil {
		t.Fatalf("%d files embedded, %v here, %v", len(files), here, err)
	}
	for _, name := range here {
		raw, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(raw, files[name]) {
			t.Errorf("%s differs: %v", name, err)
		}
		if want := "package memory.authz"; !strings.Contains(string(raw), "\n"+want) && !strings.HasPrefix(string(raw), want) {
			t.Errorf("%s is of another package", name)
		}
	}
}
