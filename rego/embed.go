package rego

import "embed"

//go:embed *.rego
var files embed.FS

// Files returns the default policy's files by name, tests included.
func Files() (map[string][]byte, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte, len(entries))
	for _, e := range entries {
		if out[e.Name()], err = files.ReadFile(e.Name()); err != nil {
			return nil, err
		}
	}
	return out, nil
}
