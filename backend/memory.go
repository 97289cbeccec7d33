package backend

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"memoryfs/audit"
	"memoryfs/backend/kv"
	"memoryfs/backend/kv/badgerkv"
	"memoryfs/backend/store"
	"memoryfs/policy"
)

// The store directory's layout.
const (
	SettingsFile = "memoryfs.yaml"
	RegistryFile = "identities.yaml"
	PolicyDir    = "policy"
	DataDir      = "data"
	BlobDir      = "blobs"
	AuditDir     = "audit"
)

// Config of Open.
type Config struct {
	Dir    string // the store directory
	Logger hclog.Logger
}

// Memory is an opened store with its policy and its audit log: one a daemon. Safe for concurrent use.
type Memory struct {
	dir      string
	settings Settings
	log      hclog.Logger
	kv       *badgerkv.Store
	store    *store.Store
	policy   *policy.Engine
	audit    *audit.Log
	applier  *applier
	paths    pathCache
	started  time.Time
	room     *store.Room

	mu       sync.Mutex
	sessions map[string]*Session // by principal, NUL, name
	pending  map[store.Place]*Pending
	backups  map[store.Place]*backup
	removals map[store.Place]removal

	stop func()
	done sync.WaitGroup
}

// Open opens the store directory; it must have been made by init. Errors: badgerkv.ErrLocked if another process holds
// it, store.ErrFormat, the policy's or the audit log's own refusal to start.
func Open(ctx context.Context, cfg Config) (*Memory, error) {
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	settings, err := LoadSettings(filepath.Join(cfg.Dir, SettingsFile))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, DataDir)); err != nil {
		return nil, fmt.Errorf("%s is not a memoryfs store (run memoryfs init): %w", cfg.Dir, err)
	}
	m := &Memory{dir: cfg.Dir, settings: settings, log: cfg.Logger, started: time.Now(),
		sessions: map[string]*Session{}, pending: map[store.Place]*Pending{}, backups: map[store.Place]*backup{},
		removals: map[store.Place]removal{}}
	if err := m.open(ctx); err != nil {
		return nil, errors.Join(err, m.Close(ctx))
	}
	return m, nil
}

// open opens the parts from the bottom up; Close takes down what is there when one fails.
func (m *Memory) open(ctx context.Context) error {
	engine, err := policy.Open(ctx, policy.Options{PolicyDir: filepath.Join(m.dir, PolicyDir),
		RegistryFile: filepath.Join(m.dir, RegistryFile), Logger: m.log.Named("policy")})
	if err != nil {
		return err
	}
	m.policy = engine
	if m.kv, err = badgerkv.Open(filepath.Join(m.dir, DataDir),
		badgerkv.Options{Logger: m.log.Named("kv"), Reserve: m.settings.Limits.Reserve}); err != nil {
		return err
	}
	m.room = &store.Room{Free: func() (uint64, error) { u, err := m.kv.Usage(); return u.Free, err }}
	if m.store, err = store.Open(ctx, m.kv, store.Options{MaxFile: m.settings.Limits.MaxFile,
		BlobDir: filepath.Join(m.dir, BlobDir), Room: m.room}); err != nil {
		return err
	}
	if m.audit, err = audit.Open(ctx, m.AuditDir(), source{m.store}, audit.Options{Logger: m.log.Named("audit")}); err != nil {
		return err
	}
	rev, err := m.store.Rev(ctx)
	if err != nil {
		return err
	}
	m.applier = newApplier(m.store, rev, m.log.Named("applier"))
	m.applier.subscribe(func(b store.Batch) <-chan struct{} { m.paths.touched(b.Inodes); return nil })
	run, cancel := context.WithCancel(context.Background())
	m.stop = cancel
	m.done.Go(func() { m.applier.run(run) })
	m.done.Go(func() { m.sweep(run) })
	m.policy.OnReload(m.policyReloaded)
	m.audit.Wake()
	return nil
}

// Close writes what the audit log still has to take over and closes the store. Call it after every mount is gone.
func (m *Memory) Close(ctx context.Context) error {
	var errs []error
	if m.stop != nil {
		m.stop()
		m.applier.close()
		m.done.Wait()
	}
	if m.audit != nil {
		errs = append(errs, m.audit.Close(ctx))
	}
	if m.store != nil {
		errs = append(errs, m.store.Close())
	} else if m.kv != nil {
		errs = append(errs, m.kv.Close())
	}
	if m.policy != nil {
		errs = append(errs, m.policy.Close())
	}
	return errors.Join(errs...)
}

// Policy is the store's policy engine.
func (m *Memory) Policy() *policy.Engine { return m.policy }

// Settings are those the store was opened with.
func (m *Memory) Settings() Settings { return m.settings }

// Dir is the store directory.
func (m *Memory) Dir() string { return m.dir }

// AuditDir is where the log's segments lie.
func (m *Memory) AuditDir() string { return filepath.Join(m.dir, AuditDir) }

// Subscribe makes fn receive every commit's changes, in revision order, before the commit is acknowledged. fn must
// return quickly and must not call into the Memory; it returns a channel that is closed when the subscriber is done
// with the batch (nil: done already). Call the returned function to end it.
func (m *Memory) Subscribe(fn func(store.Batch) <-chan struct{}) (cancel func()) {
	return m.applier.subscribe(fn)
}

// OnPolicy makes fn run after every reload of policy or registry, before the reload returns.
func (m *Memory) OnPolicy(fn func()) (cancel func()) { return m.applier.onPolicy(fn) }

func (m *Memory) policyReloaded() {
	m.audit.Refuse(audit.Record{Time: time.Now(), Kind: "policy", Op: "reload", Policy: m.policy.Revision()})
	m.applier.policyChanged()
}

// sweep removes ephemerals that nobody used for Ephemeral.Keep, old conflicts and old marks, at the start and every hour.
func (m *Memory) sweep(ctx context.Context) {
	tick := time.NewTicker(time.Hour)
	defer tick.Stop()
	for {
		n, err := m.store.SweepEphemerals(ctx, time.Now().Add(-m.settings.Ephemeral.Keep))
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.log.Warn("sweep of ephemeral files failed", "error", err)
		case n > 0:
			m.log.Info("removed old ephemeral files", "count", n)
		}
		if err := m.sweepConflicts(ctx); err != nil && ctx.Err() == nil {
			m.log.Warn("sweep of old conflicts failed", "error", err)
		}
		m.sweepSeen(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Status is what `memoryfs status` shows of a store.
type Status struct {
	Store       string    `json:"store"`
	Started     time.Time `json:"started"`
	Revision    uint64    `json:"revision"`
	Used        uint64    `json:"used_bytes"`
	Free        uint64    `json:"free_bytes"`
	Total       uint64    `json:"total_bytes"`
	Policy      string    `json:"policy_revision"`
	PolicyError string    `json:"policy_error,omitempty"` // why the last reload was refused
	Audit       string    `json:"audit"`                  // "ok", or why nothing can be changed
}

// Status never fails; what cannot be found out is zero.
func (m *Memory) Status(ctx context.Context) Status {
	s := Status{Store: m.dir, Started: m.started, Policy: m.policy.Revision(), Audit: "ok"}
	if rev, err := m.store.Rev(ctx); err == nil {
		s.Revision = uint64(rev)
	}
	if u, err := m.store.Usage(); err == nil {
		s.Used, s.Free, s.Total = u.Used, u.Free, u.Total
	}
	if err := m.policy.LastError(); err != nil {
		s.PolicyError = err.Error()
	}
	if err := m.audit.Healthy(); err != nil {
		s.Audit = err.Error()
	}
	return s
}

// Usage is for statfs.
func (m *Memory) Usage() (kv.Usage, error) { return m.store.Usage() }

// Fsck checks the engine's files, then tree, versions and blobs.
func (m *Memory) Fsck(ctx context.Context) (store.FsckReport, error) {
	damage := m.kv.Verify()
	r, err := m.store.Fsck(ctx)
	if errors.Is(damage, kv.ErrCorrupt) {
		r.Problems = append(r.Problems, store.Problem{Key: DataDir, Detail: damage.Error()})
		damage = nil
	}
	return r, errors.Join(damage, err)
}

// Audit is the log, for records that are no change of the store (a mount, a start) and for Sync.
func (m *Memory) Audit() *audit.Log { return m.audit }

// Verify checks the audit log by itself and against every version in the store. It may run while others write.
func (m *Memory) Verify(ctx context.Context) (audit.Report, error) {
	var facts []audit.Fact
	rev, err := m.store.EachVersion(ctx, func(v store.Version, head bool) error {
		facts = append(facts, audit.Fact{Memory: v.Memory.String(), Version: v.Number, Head: head, Commit: audit.Commitment(v.Salt, v.Sum)})
		return nil
	})
	if err != nil {
		return audit.Report{}, err
	}
	if err := m.audit.Sync(ctx, uint64(rev)); err != nil {
		return audit.Report{}, fmt.Errorf("audit log: %w", err)
	}
	pending, err := source{m.store}.Intents(ctx, 0, 1<<20)
	if err != nil {
		return audit.Report{}, err
	}
	all := func(yield func(audit.Fact, error) bool) {
		for _, f := range facts {
			if !yield(f, nil) {
				return
			}
		}
	}
	return audit.Verify(ctx, m.AuditDir(), all, pending, uint64(rev))
}

// source lets the audit log take intents over from the store.
type source struct{ s *store.Store }

func (s source) Intents(ctx context.Context, after uint64, limit int) ([]audit.Intent, error) {
	in, err := s.s.Intents(ctx, kv.Rev(after), limit)
	out := make([]audit.Intent, len(in))
	for i, x := range in {
		out[i] = audit.Intent{Rev: uint64(x.Rev), Op: x.Op, Data: x.Data}
	}
	return out, err
}

func (s source) Taken(ctx context.Context, ops [][16]byte, tail []byte) error {
	ids := make([]store.ID, len(ops))
	for i, op := range ops {
		ids[i] = op
	}
	return s.s.DropIntents(ctx, ids, tail)
}

func (s source) Tail(ctx context.Context) ([]byte, error) { return s.s.Tail(ctx) }

// Hex is a content hash as users see it.
func Hex(s store.Sum) string { return hex.EncodeToString(s[:]) }
