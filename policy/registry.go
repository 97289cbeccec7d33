package policy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// registryYAML is identities.yaml.
type registryYAML struct {
	Humans    []principalYAML `yaml:"humans"`
	Agents    []principalYAML `yaml:"agents"`
	Services  []principalYAML `yaml:"services"`
	Teams     []groupYAML     `yaml:"teams"`
	Projects  []projectYAML   `yaml:"projects"`
	Skills    []skillYAML     `yaml:"skills"`
	Customers []customerYAML  `yaml:"customers"`
}

type principalYAML struct {
	ID         word     `yaml:"id"`
	Name       string   `yaml:"name"` // for people to read
	UIDs       []uint32 `yaml:"uids"`
	Roles      []word   `yaml:"roles"`
	Owners     []word   `yaml:"owners"`       // of an agent or service: humans
	OnBehalfOf word     `yaml:"on_behalf_of"` // of an agent or service: a human
	Serves     []word   `yaml:"serves"`       // of an agent or service: humans
	Disabled   bool     `yaml:"disabled"`     // may nothing; its name stays taken
}

type groupYAML struct {
	ID          word   `yaml:"id"`
	Maintainers []word `yaml:"maintainers"`
	Members     []word `yaml:"members"`
}

type projectYAML struct {
	ID      word   `yaml:"id"`
	Members []word `yaml:"members"`
}

type skillYAML struct {
	ID          word   `yaml:"id"`
	Maintainers []word `yaml:"maintainers"`
}

type customerYAML struct {
	ID    word   `yaml:"id"`
	Roles []word `yaml:"roles"` // whoever has one of them
}

// word is an id or a role, and where it stands.
type word struct {
	text string
	line int
}

// UnmarshalYAML takes a scalar as it is written: an id 007 is "007".
func (w *word) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		return &yaml.TypeError{Errors: []string{fmt.Sprintf("line %d: a name is expected here", n.Line)}}
	}
	*w = word{text: n.Value, line: n.Line}
	return nil
}

// fail is an error at a line of the registry.
func (w word) fail(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", w.line, fmt.Sprintf(format, args...))
}

// check: ids name directories too, so they are plain.
func (w word) check(kind string) error {
	if !idPattern.MatchString(w.text) {
		return w.fail("%s %q: letters, digits and . _ @ + -, at most 128, not beginning with one of .@+-", kind, w.text)
	}
	return nil
}

var (
	idPattern   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._@+-]{0,127}$`)
	goTypeNames = regexp.MustCompile(` (in type|into) policy\.\w+`)
)

func loadRegistry(file string) (*registry, []byte, error) {
	raw, err := readRegular(file, maxRegistryFile)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrRegistry, err)
	}
	r, err := parseRegistry(raw)
	if err != nil {
		return nil, raw, fmt.Errorf("%s: %w", file, err)
	}
	return r, raw, nil
}

// parseRegistry decodes strictly: unknown keys, duplicate ids and uids, and references to what is not there are refused,
// with the line.
func parseRegistry(raw []byte) (*registry, error) {
	var f registryYAML
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it is empty")
		}
		return nil, fmt.Errorf("%w: %s", ErrRegistry, plain(err))
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: line %d: more than one document", ErrRegistry, more.Line)
	}
	r := &registry{subjects: map[string]*subject{}, byUID: map[uint32]*subject{}}
	if err := r.fill(f); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRegistry, err)
	}
	r.ids = sortedKeys(r.subjects)
	return r, nil
}

// plain takes the names of Go types out of an error of the decoder.
func plain(err error) string {
	s := strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  ", "")
	return goTypeNames.ReplaceAllString(s, "")
}

// nobodyUID is what the kernel gives for a uid it cannot map: never a person.
const nobodyUID = math.MaxUint32
