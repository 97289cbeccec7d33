package main

import (
	"context"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"memoryfs/control"
)

func (a *app) conflictsCmd() *cobra.Command {
	c := &cobra.Command{
		Use:   "conflicts",
		Short: "Your saves that were refused because somebody was first: their bytes are kept",
		Long: `When a save is refused as stale, its bytes are kept for you alone, beside what you had read, what is in the file instead, and
a merge of both. On a mount they are in .memory/conflicts.`,
	}
	c.AddCommand(a.conflictsListCmd(), a.conflictsShowCmd(), a.conflictsApplyCmd(), a.conflictsDropCmd())
	return c
}

func (a *app) conflictsListCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List them, oldest first",
		Args:  args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			var list []control.Conflict
			if err := a.call(c.Context(), "conflicts", control.ConflictCall{Who: a.who}, &list); err != nil {
				return err
			}
			return a.print(list, func() {
				w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
				defer w.Flush()
				for _, k := range list {
					theirs := "they removed it"
					if k.Theirs != nil {
						theirs = fmt.Sprintf("lost against version %d", k.Theirs.Version)
					}
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", k.Name, k.Path, k.Op, theirs)
				}
			})
		},
	}
}

func (a *app) conflictsShowCmd() *cobra.Command {
	var part string
	c := &cobra.Command{
		Use:   "show NAME",
		Short: "Tell what happened and what to do, or print one of mine, base, theirs, merged",
		Args:  args(1, 1),
		RunE: func(c *cobra.Command, words []string) error {
			var k control.Conflict
			if err := a.conflict(c.Context(), "conflict", words[0], false, &k); err != nil {
				return err
			}
			if part == "" {
				return a.print(k, func() { fmt.Fprint(a.out, k.Readme) })
			}
			b, ok := k.Parts[part]
			if !ok {
				return fmt.Errorf("%w: %s has no %s", errUsage, k.Name, part)
			}
			return a.print(k, func() { _, _ = a.out.Write(b) })
		},
	}
	c.Flags().StringVar(&part, "part", "", "print only this: mine, base, theirs or merged")
	return c
}

func (a *app) conflictsApplyCmd() *cobra.Command {
	var mine bool
	c := &cobra.Command{
		Use:   "apply NAME",
		Short: "Save merged as a new version of the file, on top of theirs",
		Long: `Saves merged as a new version. While it has conflict markers it is refused: edit .memory/conflicts/NAME/merged first.
With --mine your bytes as they are replace theirs, whose version stays in the history.`,
		Args: args(1, 1),
		RunE: func(c *cobra.Command, words []string) error {
			var f control.FileReply
			if err := a.conflict(c.Context(), "conflict-apply", words[0], mine, &f); err != nil {
				return err
			}
			return a.print(f.Entry, func() { fmt.Fprintf(a.out, "%s version %d %s\n", f.Entry.Path, f.Entry.Version, f.Entry.SHA256) })
		},
	}
	c.Flags().BoolVar(&mine, "mine", false, "your bytes as they are, instead of the merge")
	return c
}

func (a *app) conflictsDropCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "drop NAME…",
		Short: "Forget conflicts and their bytes",
		Args:  args(1, 1<<20),
		RunE: func(c *cobra.Command, words []string) error {
			for _, name := range words {
				if err := a.conflict(c.Context(), "conflict-drop", name, false, nil); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (a *app) conflict(ctx context.Context, verb, name string, mine bool, out any) error {
	return a.call(ctx, verb, control.ConflictCall{Who: a.who, Name: name, Mine: mine}, out)
}
