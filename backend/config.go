package backend

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"
)

// Settings is memoryfs.yaml. Unknown keys are refused.
type Settings struct {
	Limits    Limits    `yaml:"limits"`
	Ephemeral Ephemeral `yaml:"ephemeral"`
	Conflicts Conflicts `yaml:"conflicts"`
	Shared    Shared    `yaml:"shared"`
	Mounts    []Mount   `yaml:"mounts"`
}

// Mount is one that `memoryfs serve` makes.
type Mount struct {
	Dir        string `yaml:"dir"` // absolute
	As         string `yaml:"as"`
	Session    string `yaml:"session"`
	Shared     bool   `yaml:"shared"`
	AllowOther bool   `yaml:"allow_other"`
}

// Limits of the store.
type Limits struct {
	MaxFile   int64  `yaml:"max_file"`   // bytes of one file; a larger one is EFBIG
	MaxReason int    `yaml:"max_reason"` // bytes of a reason
	Reserve   uint64 `yaml:"reserve"`    // bytes kept free on the store's volume; 0: chosen by its size
}

// Ephemeral names are programs' scratch files: usable, private to their principal, never versions.
type Ephemeral struct {
	Names []string      `yaml:"names"` // shell patterns on the last segment
	Keep  time.Duration `yaml:"keep"`  // after last use
}

// Conflicts are the kept bytes of stale writes, in .memory/conflicts.
type Conflicts struct {
	Keep     time.Duration `yaml:"keep"`
	Max      int           `yaml:"max"`       // of one principal
	MaxBytes int64         `yaml:"max_bytes"` // of one principal
}

// Shared settings of mounts where the uid decides who the caller is.
type Shared struct {
	Root bool `yaml:"root"` // uid 0 may be a principal of the registry; off: it gets nothing
}

// DefaultSettings are the values of a new store.
func DefaultSettings() Settings {
	return Settings{
		Limits: Limits{MaxFile: 64 << 20, MaxReason: 10 << 10},
		Ephemeral: Ephemeral{
			Names: []string{"*~", ".*.sw?", "*.sw?", ".#*", "#*#", "4913", "sed??????", ".goutputstream-*",
				"*.tmp", "*.tmp.*", ".tmp*", "tmp????????", ".*.??????",
				"XX??????",                       // perl -i (measured: perl 5.36 makes XXykkFqI)
				"*___jb_tmp___", "*___jb_old___", // IntelliJ's safe write
				"*.vsctmp"}, // VS Code's atomic write
			Keep: 7 * 24 * time.Hour,
		},
		Conflicts: Conflicts{Keep: 7 * 24 * time.Hour, Max: 100, MaxBytes: 256 << 20},
	}
}

// DefaultConfigYAML is the memoryfs.yaml that init writes: the defaults, commented.
func DefaultConfigYAML() []byte {
	d := DefaultSettings()
	var b bytes.Buffer
	fmt.Fprintf(&b, `# memoryfs.yaml: settings of this store. Unknown keys are refused; a restart of the daemon applies changes.
limits:
  max_file: %d      # bytes of one file; a larger one is refused with EFBIG
  max_reason: %d       # bytes of a reason given with a change
  reserve: 0              # bytes kept free on the store's volume (ENOSPC before it is full); 0: chosen by its size
ephemeral:                # programs' scratch files: private to their principal, never versions, never audited
  keep: %s             # removed this long after their last use
  names:                  # shell patterns on the file's name
`, d.Limits.MaxFile, d.Limits.MaxReason, d.Ephemeral.Keep)
	for _, n := range d.Ephemeral.Names {
		fmt.Fprintf(&b, "    - %q\n", n)
	}
	fmt.Fprintf(&b, `conflicts:                # the bytes of stale writes, kept for who lost them (.memory/conflicts); the oldest go first
  keep: %s
  max: %d                # of one principal
  max_bytes: %d    # of one principal
`, d.Conflicts.Keep, d.Conflicts.Max, d.Conflicts.MaxBytes)
	b.WriteString(`shared:                   # mounts made with --shared, where the uid says who is calling
  root: false             # true: uid 0 may be a principal of identities.yaml; false: uid 0 gets nothing
mounts: []                # what memoryfs serve mounts, for example:
#  - {dir: /srv/memory, shared: true}
#  - {dir: /run/agent-104/memory, as: agent-104, session: night-run, allow_other: true}
`)
	return b.Bytes()
}

// LoadSettings reads memoryfs.yaml strictly; a missing file means the defaults.
func LoadSettings(file string) (Settings, error) {
	s := DefaultSettings()
	raw, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read settings: %w", err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	if err := s.validate(); err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func (s Settings) validate() error {
	if s.Limits.MaxFile < 4096 || s.Limits.MaxFile > 1<<30 {
		return fmt.Errorf("limits.max_file: %d is not between 4096 and 1 GiB", s.Limits.MaxFile)
	}
	if s.Limits.MaxReason < 0 || s.Limits.MaxReason > 64<<10 {
		return fmt.Errorf("limits.max_reason: %d is not between 0 and 64 KiB", s.Limits.MaxReason)
	}
	if s.Ephemeral.Keep < time.Minute {
		return fmt.Errorf("ephemeral.keep: %s is shorter than a minute", s.Ephemeral.Keep)
	}
	if s.Conflicts.Keep < time.Minute || s.Conflicts.Max < 1 || s.Conflicts.MaxBytes < 1 {
		return fmt.Errorf("conflicts: keep must be a minute or more, max and max_bytes 1 or more")
	}
	for _, m := range s.Mounts {
		if !filepath.IsAbs(m.Dir) || m.Shared == (m.As != "") {
			return fmt.Errorf("mounts: %q: dir must be absolute, and either as or shared be given", m.Dir)
		}
	}
	for _, n := range s.Ephemeral.Names {
		if _, err := filepath.Match(n, "x"); err != nil {
			return fmt.Errorf("ephemeral.names: %q: %w", n, err)
		}
	}
	return nil
}

// IsEphemeral tells whether a file of this name is a program's scratch. Directories never are.
func (s Settings) IsEphemeral(name string) bool {
	for _, pattern := range s.Ephemeral.Names {
		if ok, _ := filepath.Match(pattern, name); ok {
			return true
		}
	}
	return false
}
