package main

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"memoryfs/control"
)

func (a *app) catCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "cat PATH…",
		Short: "Print files",
		Args:  args(1, 1<<20),
		RunE: func(c *cobra.Command, words []string) error {
			for _, w := range words {
				var f control.FileReply
				if err := a.pathCall(c.Context(), "cat", w, control.PathCall{}, &f); err != nil {
					return err
				}
				if err := a.print(f, func() { _, _ = a.out.Write(f.Content) }); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) putCmd() *cobra.Command {
	var in control.PutCall
	c := &cobra.Command{
		Use:   "put PATH [FILE]",
		Short: "Write a file from FILE, or from standard input, as one version",
		Example: `  memoryfs put teams/engineering/architecture.md < new.md
  memoryfs put --append --as agent-104 agents/agent-104/scratchpad.md <<< "- a note"
  memoryfs put --if-match $(sha256sum < old.md | cut -c1-64) projects/billing-redesign/current-status.md new.md`,
		Args: args(1, 2),
		RunE: func(c *cobra.Command, words []string) error {
			src := a.in
			if len(words) == 2 {
				f, err := os.Open(words[1])
				if err != nil {
					return fmt.Errorf("%w: %w", errUsage, err)
				}
				defer f.Close()
				src = f
			}
			var err error
			if in.Content, err = io.ReadAll(src); err != nil {
				return err
			}
			return a.connect(c.Context(), func(client *control.Client) error {
				if in.Path, err = a.path(c.Context(), client, words[0]); err != nil {
					return err
				}
				in.Who = a.who
				var f control.FileReply
				if err := client.Call(c.Context(), "put", in, &f); err != nil {
					return err
				}
				return a.print(f.Entry, func() { fmt.Fprintf(a.out, "%s version %d %s\n", f.Entry.Path, f.Entry.Version, f.Entry.SHA256) })
			})
		},
	}
	c.Flags().StringVar(&in.IfMatch, "if-match", "", "only if the file's SHA-256 is this; \"none\": only if there is no such file")
	c.Flags().BoolVar(&in.Append, "append", false, "add to the end; never conflicts")
	return c
}

func (a *app) lsCmd() *cobra.Command {
	var long bool
	c := &cobra.Command{
		Use:   "ls [PATH]",
		Short: "List a directory",
		Args:  args(0, 1),
		RunE: func(c *cobra.Command, words []string) error {
			path := "/"
			if len(words) == 1 {
				path = words[0]
			}
			var list []control.Entry
			if err := a.pathCall(c.Context(), "ls", path, control.PathCall{}, &list); err != nil {
				return err
			}
			return a.print(list, func() { a.list(list, long) })
		},
	}
	c.Flags().BoolVarP(&long, "long", "l", false, "with write (may you), size, version and time")
	return c
}

func (a *app) list(list []control.Entry, long bool) {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	for _, e := range list {
		name := e.Name.String()
		if e.Type == "directory" {
			name += "/"
		}
		if e.Type == "symlink" {
			name += " -> " + e.Target.String()
		}
		if !long {
			fmt.Fprintln(w, name)
			continue
		}
		fmt.Fprintf(w, "%s\t%d\tv%d\t%s\t%s\n", e.Write, e.Size, e.Version, e.Mtime.Local().Format("2006-01-02 15:04"), name)
	}
}

func (a *app) rmCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "rm PATH…",
		Short: "Remove files and empty directories; their history stays",
		Args:  args(1, 1<<20),
		RunE: func(c *cobra.Command, words []string) error {
			for _, w := range words {
				if err := a.pathCall(c.Context(), "rm", w, control.PathCall{}, nil); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) mvCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "mv FROM TO",
		Short: "Rename a file or directory, or move it into a directory",
		Args:  args(2, 2),
		RunE: func(c *cobra.Command, words []string) error {
			return a.connect(c.Context(), func(client *control.Client) error {
				from, err := a.path(c.Context(), client, words[0])
				if err != nil {
					return err
				}
				to, err := a.path(c.Context(), client, words[1])
				if err != nil {
					return err
				}
				return client.Call(c.Context(), "mv", control.PathCall{Who: a.who, Path: from, To: to}, nil)
			})
		},
	}
}

func (a *app) mkdirCmd() *cobra.Command {
	var in control.PathCall
	c := &cobra.Command{
		Use:   "mkdir PATH",
		Short: "Make a directory",
		Args:  args(1, 1),
		RunE: func(c *cobra.Command, words []string) error {
			return a.pathCall(c.Context(), "mkdir", words[0], in, nil)
		},
	}
	c.Flags().BoolVarP(&in.Parents, "parents", "p", false, "and those above it; no error if it is there")
	return c
}
