package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"memoryfs/control"
	"memoryfs/fusefs"
)

func (a *app) mountCmd() *cobra.Command {
	var spec control.MountSpec
	var foreground bool
	c := &cobra.Command{
		Use:   "mount DIR",
		Short: "Mount the memory at DIR, as yourself or as --as",
		Long: `Mounts the memory and returns when the mount answers. A daemon is started if none runs for this store; it ends by
itself when its last mount is gone.

Everything done on the mount is done as one principal (--as; default: the human of your uid in identities.yaml). With
--shared, each caller's uid says who it is. With --session all of the mount is one session; without, every process
belongs to that of MEMORYFS_SESSION in its environment, its container, or its terminal.`,
		Example: `  memoryfs mount memory
  memoryfs mount --as agent-104 --session run-17 --reason "weekly review" /run/agent-104/memory`,
		Args: args(1, 1),
		RunE: func(c *cobra.Command, words []string) error {
			dir, err := mountPoint(words[0])
			if err != nil {
				return err
			}
			spec.Who, spec.Dir = a.who, control.Path(dir)
			if !c.Flags().Changed("session") {
				spec.Session = os.Getenv("MEMORYFS_SESSION") // else each caller's own
			}
			if foreground {
				return a.mountForeground(c, spec)
			}
			client, err := a.daemon(c.Context())
			if err != nil {
				return err
			}
			var info control.MountInfo
			if err := client.Call(c.Context(), "mount", spec, &info); err != nil {
				return err
			}
			return a.print(info, func() {
				as := "as " + info.Principal
				if info.Shared {
					as = "shared"
				}
				fmt.Fprintf(a.out, "%s is mounted %s; read %s/.memory/README.md, end with: memoryfs unmount %s\n", info.Dir, as, words[0], words[0])
			})
		},
	}
	f := c.Flags()
	f.BoolVar(&spec.Shared, "shared", false, "every uid of the registry may enter and is its own principal")
	f.BoolVar(&spec.AllowOther, "allow-other", false, "let other users and containers enter; all of them are the mount's principal")
	f.BoolVar(&foreground, "foreground", false, "stay in the foreground, for a service manager")
	return c
}

// mountForeground holds the store itself.
func (a *app) mountForeground(c *cobra.Command, spec control.MountSpec) error {
	dir, err := a.storeDir()
	if err != nil {
		return err
	}
	if _, err := control.Dial(dir); err == nil {
		return fmt.Errorf("%w: one runs already: mount without --foreground, or stop it (memoryfs stop)", errDaemon)
	}
	return a.serve(c.Context(), &spec, func() { fmt.Fprintf(a.out, "%s is mounted; Ctrl-C ends it\n", spec.Dir) }, false)
}

// mountPoint is where to mount: absolute, its parent's links resolved, and made if it is not there. A dead mount there
// cannot be looked at; that is for the daemon to clean.
func mountPoint(word string) (string, error) {
	abs, err := filepath.Abs(word)
	if err != nil {
		return "", err
	}
	if dead, err := fusefs.IsDead(abs); err == nil && dead {
		return abs, nil
	}
	if err := os.MkdirAll(abs, 0o755); err != nil {
		return "", fmt.Errorf("make the mount point: %w", err)
	}
	return filepath.EvalSymlinks(abs)
}

func (a *app) unmountCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "unmount DIR",
		Aliases: []string{"umount"},
		Short:   "Take a mount away",
		Args:    args(1, 1),
		RunE: func(c *cobra.Command, words []string) error {
			dir, err := filepath.Abs(words[0])
			if err != nil {
				return err
			}
			if dead, err := fusefs.IsDead(dir); err == nil && dead {
				return fusefs.CleanDead(dir)
			}
			if real, err := filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
				dir = filepath.Join(real, filepath.Base(dir))
			}
			store, err := a.storeDir()
			if err != nil {
				return err
			}
			client, err := control.Dial(store)
			if errors.Is(err, control.ErrNoDaemon) {
				return fmt.Errorf("%s is not mounted: %w", dir, err)
			}
			if err != nil {
				return err
			}
			return client.Call(c.Context(), "unmount", control.MountSpec{Who: a.who, Dir: control.Path(dir)}, nil)
		},
	}
}

func (a *app) stopCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "stop",
		Short: "Stop the daemon of this store, and its mounts",
		Args:  args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			store, err := a.storeDir()
			if err != nil {
				return err
			}
			client, err := control.Dial(store)
			if err != nil {
				return err
			}
			return client.Call(c.Context(), "stop", a.who, nil)
		},
	}
}

func (a *app) statusCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show the store, the daemon, its mounts, and whether policy and audit log are in order",
		Args:  args(0, 0),
		RunE: func(c *cobra.Command, _ []string) error {
			var s control.StatusReply
			if err := a.call(c.Context(), "status", control.Who{}, &s); err != nil {
				return err
			}
			return a.print(s, func() {
				fmt.Fprintf(a.out, "store     %s (%s used, %s free)\n", s.Store, size(int64(s.Used)), size(int64(s.Free)))
				if s.Daemon {
					fmt.Fprintf(a.out, "daemon    pid %d, since %s\n", s.PID, s.Started.Format("2006-01-02 15:04:05"))
				} else {
					fmt.Fprintln(a.out, "daemon    none")
				}
				fmt.Fprintf(a.out, "revision  %d\npolicy    %s\n", s.Revision, s.Policy)
				if s.PolicyError != "" {
					fmt.Fprintf(a.out, "          the last reload was refused: %s\n", strings.ReplaceAll(s.PolicyError, "\n", "\n          "))
				}
				fmt.Fprintf(a.out, "audit     %s\n", s.Audit)
				for _, m := range s.Mounts {
					who := m.Principal
					if m.Shared {
						who = "(shared)"
					}
					fmt.Fprintf(a.out, "mount     %s as %s %s\n", m.Dir, who, m.Session)
				}
			})
		},
	}
}

// size prints bytes for people.
func size(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f := float64(n)
	for _, u := range units {
		if f < 1024 || u == "TiB" {
			if u == "B" {
				return fmt.Sprintf("%d B", n)
			}
			return fmt.Sprintf("%.1f %s", f, u)
		}
		f /= 1024
	}
	return ""
}
