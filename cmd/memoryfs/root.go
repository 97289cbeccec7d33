package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"memoryfs/control"
)

// app is one run of the command.
type app struct {
	in       io.Reader
	out, err io.Writer
	store    string
	json     bool
	who      control.Who
}

func run(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
	a := &app{in: in, out: out, err: errw}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errw)
	err := known(root, args)
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	return report(errw, err, a.json)
}

// known refuses words that are no verb: cobra's own error for that has no type.
func known(root *cobra.Command, args []string) error {
	c, rest, err := root.Find(args)
	if err != nil {
		return fmt.Errorf("%w: %w (see memoryfs help)", errUsage, err)
	}
	if c.HasSubCommands() && c != root && len(rest) > 0 && rest[0] != "help" && rest[0][0] != '-' {
		return fmt.Errorf("%w: there is no memoryfs %s %s (see memoryfs help %s)", errUsage, c.Name(), rest[0], c.Name())
	}
	return nil
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "memoryfs",
		Short: "Ordinary files for an organisation's agent memory: governed, versioned, recorded",
		Example: `  memoryfs init --sample             make a store with a sample memory
  memoryfs mount memory              mount it at ./memory, as yourself
  grep -rn approval memory           … and use it like any directory
  memoryfs log memory/teams/engineering/architecture.md
  memoryfs audit verify
  memoryfs unmount memory`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return fmt.Errorf("%w: %s: %w (see memoryfs help %s)", errUsage, c.Name(), err, c.Name())
	})
	f := root.PersistentFlags()
	f.StringVar(&a.store, "store", defaultStore(), "the store directory ($MEMORYFS_STORE)")
	f.BoolVar(&a.json, "json", false, "print JSON")
	f.StringVar(&a.who.As, "as", "", "act as this principal; policy says whom you may act as (default: yourself)")
	f.StringVar(&a.who.Session, "session", defaultSession(), "name of this session ($MEMORYFS_SESSION)")
	f.StringVar(&a.who.Reason, "reason", os.Getenv("MEMORYFS_REASON"), "why: recorded with every change ($MEMORYFS_REASON)")
	f.StringVar(&a.who.Conversation, "conversation", os.Getenv("MEMORYFS_CONVERSATION"), "which conversation led to it ($MEMORYFS_CONVERSATION)")
	root.AddCommand(a.initCmd(), a.mountCmd(), a.unmountCmd(), a.serveCmd(), a.stopCmd(), a.statusCmd(), a.catCmd(), a.putCmd(), a.lsCmd(), a.diffCmd(), a.blameCmd(), a.revertCmd(), a.restoreCmd(),
		a.rmCmd(), a.mvCmd(), a.mkdirCmd(), a.logCmd(), a.showCmd(), a.conflictsCmd(), a.auditCmd(), a.policyCmd(), a.fsckCmd())
	return root
}

// defaultStore is $MEMORYFS_STORE, else the XDG data directory.
func defaultStore() string {
	if s := os.Getenv("MEMORYFS_STORE"); s != "" {
		return s
	}
	if s := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(s) {
		return filepath.Join(s, "memoryfs")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "memoryfs-store"
	}
	return filepath.Join(home, ".local", "share", "memoryfs")
}

// storeDir is absolute: the daemon's working directory is another one.
func (a *app) storeDir() (string, error) { return filepath.Abs(a.store) }

// args checks how many words follow a verb.
func args(least, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, words []string) error {
		if len(words) < least || len(words) > most {
			return fmt.Errorf("%w: memoryfs %s", errUsage, c.Use)
		}
		return nil
	}
}

// print writes JSON if that is asked for, else calls text.
func (a *app) print(v any, text func()) error {
	if !a.json {
		text()
		return nil
	}
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
