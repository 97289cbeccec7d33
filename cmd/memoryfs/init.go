package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"memoryfs/backend"
	"memoryfs/backend/kv/badgerkv"
	"memoryfs/backend/store"
	"memoryfs/policy"
	"memoryfs/rego"
)

//go:embed all:sample
var sampleFiles embed.FS

func (a *app) initCmd() *cobra.Command {
	var sample bool
	c := &cobra.Command{
		Use:   "init",
		Short: "Make a store: settings, registry with you as its first human, policy, and an empty memory",
		Args:  args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := a.storeDir()
			if err != nil {
				return err
			}
			human, err := login()
			if err != nil {
				return err
			}
			if err := makeStore(c.Context(), dir, human); err != nil {
				return err
			}
			if err := fill(c.Context(), dir, human, sample); err != nil {
				// Half a store is worse than none: the next init begins anew. Settings, registry and policy stay.
				return errors.Join(err, os.RemoveAll(filepath.Join(dir, backend.DataDir)), os.RemoveAll(filepath.Join(dir, backend.AuditDir)))
			}
			made := map[string]string{"store": dir, "human": human}
			return a.print(made, func() {
				fmt.Fprintf(a.out, "made a store in %s; you are %s in its %s\n", dir, human, backend.RegistryFile)
			})
		},
	}
	c.Flags().BoolVar(&sample, "sample", false, "fill it with a sample memory")
	return c
}

// login is the name of the human who runs this.
func login() (string, error) {
	u, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("who are you: %w", err)
	}
	return u.Username, nil
}

// makeStore writes the files of a new store. Nothing that is there is touched.
func makeStore(ctx context.Context, dir, human string) error {
	if _, err := os.Stat(filepath.Join(dir, backend.DataDir)); err == nil {
		return fmt.Errorf("%w: there is a store in %s already", backend.ErrExist, dir)
	}
	for _, d := range []string{dir, filepath.Join(dir, backend.PolicyDir)} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	files, err := rego.Files()
	if err != nil {
		return err
	}
	all := map[string][]byte{
		backend.SettingsFile: backend.DefaultConfigYAML(),
		backend.RegistryFile: policy.SampleRegistry(human, os.Getuid()),
	}
	for name, b := range files {
		all[filepath.Join(backend.PolicyDir, name)] = b
	}
	for name, b := range all {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue // kept: somebody prepared it
		}
		if err != nil {
			return err
		}
		if _, err := f.Write(b); err != nil {
			return errors.Join(err, f.Close())
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	engine, err := badgerkv.Open(filepath.Join(dir, backend.DataDir), badgerkv.Options{})
	if err != nil {
		return err
	}
	s, err := store.Open(ctx, engine, store.Options{})
	if err != nil {
		return errors.Join(err, engine.Close())
	}
	return s.Close()
}

// fill imports the scope directories, and the sample memory if asked for.
func fill(ctx context.Context, dir, human string, sample bool) error {
	mem, err := backend.Open(ctx, backend.Config{Dir: dir})
	if err != nil {
		return err
	}
	var files []backend.ImportFile
	for _, scope := range policy.Scopes() {
		files = append(files, backend.ImportFile{Path: scope, Dir: true})
	}
	if sample {
		more, err := sampleMemory(human)
		if err != nil {
			return errors.Join(err, mem.Close(ctx))
		}
		files = append(files, more...)
	}
	return errors.Join(mem.Import(ctx, human, files), mem.Close(ctx))
}

// sampleMemory is the embedded tree, with USER replaced by the human's id in names and text.
func sampleMemory(human string) ([]backend.ImportFile, error) {
	var files []backend.ImportFile
	err := fs.WalkDir(sampleFiles, "sample", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := sampleFiles.ReadFile(path)
		text := strings.ReplaceAll(string(b), "{USER}", human)
		name := strings.ReplaceAll(strings.TrimPrefix(path, "sample/"), "_USER_", human)
		files = append(files, backend.ImportFile{Path: name, Content: []byte(text)})
		return err
	})
	return files, err
}
