package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"memoryfs/backend"
	"memoryfs/control"
)

func (a *app) logCmd() *cobra.Command {
	var in control.PathCall
	c := &cobra.Command{
		Use:   "log PATH",
		Short: "Show a memory's versions, newest first: who, when, in which session, why",
		Args:  args(1, 1),
		RunE: func(c *cobra.Command, words []string) error {
			var list []control.Version
			if err := a.pathCall(c.Context(), "log", words[0], in, &list); err != nil {
				return err
			}
			return a.print(list, func() {
				for i, v := range list {
					if i > 0 {
						fmt.Fprintln(a.out)
					}
					a.version(v)
				}
			})
		},
	}
	c.Flags().IntVarP(&in.Limit, "limit", "n", 0, "at most so many; 0: all")
	return c
}

func (a *app) version(v control.Version) {
	if v.Op == string(backend.KindWithheld) {
		fmt.Fprintf(a.out, "version %d  %s  made where you may not read\n", v.Number, v.Time.Local().Format("2006-01-02 15:04:05 -0700"))
		return
	}
	fmt.Fprintf(a.out, "version %d  %s  %s  %d bytes\n", v.Number, v.Time.Local().Format("2006-01-02 15:04:05 -0700"), v.Op, v.Size)
	who := fmt.Sprintf("%s (%s)", v.Principal, v.Kind)
	if v.OnBehalfOf != "" {
		who += " on behalf of " + v.OnBehalfOf
	}
	fmt.Fprintf(a.out, "  author    %s\n", who)
	path := v.Path.String()
	if v.From != "" {
		path += " (from " + v.From.String() + ")"
	}
	for _, line := range []struct{ key, value string }{{"path", path}, {"session", v.Session}, {"conversation", v.Conversation},
		{"reason", v.Reason}, {"approval", v.Approval}, {"base", v.Base}, {"sha256", v.SHA256}} {
		if line.value != "" {
			fmt.Fprintf(a.out, "  %-9s %s\n", line.key, line.value)
		}
	}
}

func (a *app) showCmd() *cobra.Command {
	var in control.PathCall
	c := &cobra.Command{
		Use:   "show PATH",
		Short: "Print a version of a memory",
		Args:  args(1, 1),
		RunE: func(c *cobra.Command, words []string) error {
			var f control.FileReply
			if err := a.pathCall(c.Context(), "show", words[0], in, &f); err != nil {
				return err
			}
			return a.print(f, func() { _, _ = a.out.Write(f.Content) })
		},
	}
	c.Flags().Uint64Var(&in.Number, "version", 0, "which; 0: the newest")
	return c
}

func (a *app) diffCmd() *cobra.Command {
	var in control.DiffCall
	var stat, word bool
	c := &cobra.Command{
		Use:   "diff PATH",
		Short: "Show what changed between two versions of a memory",
		Args:  args(1, 1),
		RunE: func(c *cobra.Command, words []string) error {
			var d control.DiffReply
			err := a.connect(c.Context(), func(client *control.Client) error {
				p, err := a.path(c.Context(), client, words[0])
				if err != nil {
					return err
				}
				in.Who, in.Path = a.who, p
				return client.Call(c.Context(), "diff", in, &d)
			})
			if err != nil {
				return err
			}
			return a.print(d, func() {
				switch {
				case stat:
					fmt.Fprintf(a.out, "%s  +%d -%d lines\n", d.To.Path, d.Added, d.Removed)
				case word:
					fmt.Fprint(a.out, d.Words)
				default:
					fmt.Fprint(a.out, d.Unified)
				}
			})
		},
	}
	c.Flags().Uint64Var(&in.From, "from", 0, "version; 0: the one before --to")
	c.Flags().Uint64Var(&in.To, "to", 0, "version; 0: the newest")
	c.Flags().BoolVar(&stat, "stat", false, "only how many lines")
	c.Flags().BoolVar(&word, "word", false, "word by word: [-removed-] {+added+}")
	c.MarkFlagsMutuallyExclusive("stat", "word")
	return c
}

func (a *app) blameCmd() *cobra.Command {
	var in control.PathCall
	c := &cobra.Command{
		Use:   "blame PATH",
		Short: "Show which version brought each line: by whom, in which session and conversation, why",
		Args:  args(1, 1),
		RunE: func(c *cobra.Command, words []string) error {
			var r control.BlameReply
			if err := a.pathCall(c.Context(), "blame", words[0], in, &r); err != nil {
				return err
			}
			return a.print(r, func() { a.blame(r) })
		},
	}
	c.Flags().Uint64Var(&in.Number, "version", 0, "of which version; 0: the newest")
	return c
}

// blame prints the lines, and below them what each version is.
func (a *app) blame(r control.BlameReply) {
	author := map[uint64]string{}
	width, digits := 0, 0
	for _, v := range r.Versions {
		author[v.Number] = v.Principal
		width, digits = max(width, len(v.Principal)), max(digits, len(fmt.Sprint(v.Number)))
	}
	for _, l := range r.Lines {
		fmt.Fprintf(a.out, "%*d %-*s | %s\n", digits, l.Version, width, author[l.Version], strings.TrimSuffix(l.Line, "\n"))
	}
	for _, v := range r.Versions {
		fmt.Fprintln(a.out)
		a.version(v)
	}
}

func (a *app) revertCmd() *cobra.Command {
	return a.undoCmd("revert", "Take the change of one version back; what later versions changed stays",
		"which version's change to take back", true)
}

func (a *app) restoreCmd() *cobra.Command {
	return a.undoCmd("restore", "Bring a version back as the newest, or a deleted memory to its last place",
		"which; 0: the last of a deleted memory", false)
}

func (a *app) undoCmd(verb, short, which string, needed bool) *cobra.Command {
	var in control.UndoCall
	c := &cobra.Command{
		Use:   verb + " PATH",
		Short: short,
		Args:  args(1, 1),
		RunE: func(c *cobra.Command, words []string) error {
			var u control.UndoReply
			err := a.connect(c.Context(), func(client *control.Client) error {
				p, err := a.path(c.Context(), client, words[0])
				if err != nil {
					return err
				}
				in.Who, in.Path = a.who, p
				return client.Call(c.Context(), verb, in, &u)
			})
			if err != nil {
				return err
			}
			return a.print(u, func() {
				fmt.Fprint(a.out, u.Unified)
				if !in.DryRun {
					fmt.Fprintf(a.out, "%s version %d\n", u.Path, u.Version)
				}
			})
		},
	}
	c.Flags().Uint64Var(&in.Number, "version", 0, which)
	c.Flags().BoolVar(&in.DryRun, "dry-run", false, "only show what would change")
	if needed {
		_ = c.MarkFlagRequired("version") // the flag is there
	}
	return c
}
