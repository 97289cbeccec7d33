package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"memoryfs/audit"
	"memoryfs/backend"
	"memoryfs/backend/store"
	"memoryfs/control"
	"memoryfs/policy"
)

func (a *app) auditCmd() *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Read and check the audit log"}
	c.AddCommand(a.auditTailCmd(), a.auditVerifyCmd())
	return c
}

func (a *app) auditTailCmd() *cobra.Command {
	var in control.TailCall
	var follow bool
	c := &cobra.Command{
		Use:   "tail",
		Short: "Print the last records, one JSON line each",
		Args:  args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			if dir, err := a.storeDir(); err == nil && follow {
				if _, err := control.Dial(dir); err != nil {
					return fmt.Errorf("--follow needs the daemon, or it would keep the store from everybody: %w", err)
				}
			}
			return a.connect(c.Context(), func(client *control.Client) error {
				in.Who = a.who
				for {
					var out control.TailReply
					if err := client.Call(c.Context(), "tail", in, &out); err != nil {
						return err
					}
					for _, line := range out.Lines {
						fmt.Fprintln(a.out, line)
					}
					if !follow {
						return nil
					}
					in.From = out.Next
					select {
					case <-c.Context().Done():
						return nil
					case <-time.After(500 * time.Millisecond):
					}
				}
			})
		},
	}
	f := c.Flags()
	f.IntVarP(&in.Count, "lines", "n", 20, "how many")
	f.BoolVarP(&follow, "follow", "f", false, "go on as records come")
	f.StringVar(&in.Principal, "principal", "", "only this principal's")
	f.StringVar((*string)(&in.Path), "path", "", "only of this path and below")
	f.StringVar(&in.Kind, "kind", "", "only this kind: change, refusal, read, mount, unmount, policy, recover")
	f.StringVar(&in.Of, "of-session", "", "only this session's")
	return c
}

func (a *app) auditVerifyCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check that the log has no gap, and one record for every version in the store, and the reverse",
		Args:  args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			var r audit.Report
			if err := a.call(c.Context(), "verify", a.who, &r); err != nil {
				return err
			}
			err := a.print(r, func() {
				for _, p := range r.Problems {
					fmt.Fprintf(a.out, "BAD  record %d  memory %s  %s\n", p.Seq, p.Memory, p.Detail)
				}
				if len(r.Problems) == 0 {
					fmt.Fprintf(a.out, "ok: %d records (%d pending), %d versions, each with its record\n", r.Records, r.Pending, r.Versions)
				}
			})
			if err == nil && len(r.Problems) > 0 {
				return errFound
			}
			return err
		},
	}
}

func (a *app) fsckCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "fsck",
		Short: "Check the store: tree, versions, blobs and their hashes",
		Args:  args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			var r store.FsckReport
			if err := a.call(c.Context(), "fsck", a.who, &r); err != nil {
				return err
			}
			err := a.print(r, func() {
				for _, p := range r.Problems {
					fmt.Fprintf(a.out, "BAD  %s  %s\n", p.Key, p.Detail)
				}
				if len(r.Problems) == 0 {
					fmt.Fprintf(a.out, "ok: %d directories, %d files, %d symlinks, %d versions, %d blobs (%s), %d scratch files\n",
						r.Dirs, r.Files, r.Symlinks, r.Versions, r.Blobs, size(r.Bytes), r.Ephemerals)
				}
			})
			if err == nil && len(r.Problems) > 0 {
				return errFound
			}
			return err
		},
	}
}

func (a *app) policyCmd() *cobra.Command {
	c := &cobra.Command{Use: "policy", Short: "Check, test, explain and reload the policy"}
	c.AddCommand(a.policyCheckCmd(), a.policyTestCmd(), a.policyExplainCmd(), a.policyReloadCmd())
	return c
}

// policyFiles are those of the store, or of another directory that is tried.
func (a *app) policyFiles(words []string) (dir, registry string, err error) {
	s, err := a.storeDir()
	if err != nil {
		return "", "", err
	}
	dir, registry = filepath.Join(s, backend.PolicyDir), filepath.Join(s, backend.RegistryFile)
	if len(words) == 1 {
		dir = words[0]
	}
	return dir, registry, nil
}

func (a *app) policyCheckCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "check [DIR]",
		Short: "Do everything a reload would do to the policy in DIR (default: the store's), and change nothing",
		Args:  args(0, 1),
		RunE: func(c *cobra.Command, words []string) error {
			dir, registry, err := a.policyFiles(words)
			if err != nil {
				return err
			}
			r, err := policy.Check(c.Context(), dir, registry)
			if err != nil {
				return err
			}
			return a.print(r, func() {
				fmt.Fprintf(a.out, "ok: policy %s, %d principals, %d tests pass\n", r.Revision, r.Principals, len(r.Tests))
			})
		},
	}
}

func (a *app) policyTestCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run the policy's own tests",
		Args:  args(0, 1),
		RunE: func(c *cobra.Command, words []string) error {
			dir, registry, err := a.policyFiles(words)
			if err != nil {
				return err
			}
			results, err := policy.Test(c.Context(), dir, registry)
			printErr := a.print(results, func() {
				for _, r := range results {
					word := "PASS"
					switch {
					case r.Skip:
						word = "SKIP"
					case !r.Pass:
						word = "FAIL"
					}
					fmt.Fprintf(a.out, "%s  %s  %s %s\n", word, r.Name, r.Location, r.Error)
				}
			})
			if err != nil {
				return err
			}
			return printErr
		},
	}
}

func (a *app) policyExplainCmd() *cobra.Command {
	var in control.ExplainCall
	var action string
	c := &cobra.Command{
		Use:     "explain PATH",
		Short:   "Say which rules decide, what is missing, and who may",
		Example: `  memoryfs policy explain --as agent-104 --action write organization/principles.md`,
		Args:    args(1, 1),
		RunE: func(c *cobra.Command, words []string) error {
			return a.connect(c.Context(), func(client *control.Client) error {
				var err error
				if in.Path, err = a.path(c.Context(), client, words[0]); err != nil {
					return err
				}
				in.Action, in.Principal = policy.Action(action), a.who.As
				in.Who = a.who
				in.Who.As = "" // asked about, not acted as
				var x policy.Explanation
				if err := client.Call(c.Context(), "explain", in, &x); err != nil {
					return err
				}
				return a.print(x, func() { a.explanation(x) })
			})
		},
	}
	c.Flags().StringVar(&action, "action", "write", "list, read, write, create, delete, mount (PATH is then a principal), admin")
	c.Flags().BoolVar(&in.Dir, "dir", false, "PATH is a directory")
	return c
}

func (a *app) explanation(x policy.Explanation) {
	fmt.Fprintf(a.out, "%s: %s may %s %s\n", strings.ToUpper(x.Effect), x.Principal, x.Action, x.Path)
	list := func(label string, items []string) {
		if len(items) > 0 {
			fmt.Fprintf(a.out, "  %-12s %s\n", label, strings.Join(items, ", "))
		}
	}
	list("rules", x.Rules)
	if x.Cause != "" {
		list("cause", []string{x.Cause})
	}
	if x.Missing != "" {
		list("missing", []string{x.Missing})
	}
	list("may", x.MayDo)
	list("may propose", x.MayAsk)
	list("policy", []string{x.Policy})
}

func (a *app) policyReloadCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Make the daemon load policy and registry again; what is broken is refused and the old one serves on",
		Args:  args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			var out struct {
				Revision string `json:"policy_revision"`
			}
			if err := a.call(c.Context(), "reload", a.who, &out); err != nil {
				return err
			}
			return a.print(out, func() { fmt.Fprintln(a.out, "policy", out.Revision) })
		},
	}
}
