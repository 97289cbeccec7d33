package main

import (
	"fmt"

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
