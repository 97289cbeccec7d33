package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/hashicorp/go-hclog"

	"memoryfs/audit"
	"memoryfs/backend"
	"memoryfs/policy"
)

// Mounter makes mounts; the command gives one, since front ends do not know each other.
type Mounter interface {
	Mount(ctx context.Context, spec MountSpec) error
	Unmount(ctx context.Context, dir string) error
	Mounts() []MountInfo
	Stop()
}

// Handler serves the calls.
type Handler struct {
	mem     *backend.Memory
	mounter Mounter // nil: in the command's own process, which mounts nothing
	log     hclog.Logger
	mux     *http.ServeMux
}

// maxBody of a call: a file of the largest size in base64, and the rest.
const maxBody = 100 << 20

// New makes the handler.
func New(mem *backend.Memory, mounter Mounter, log hclog.Logger) *Handler {
	h := &Handler{mem: mem, mounter: mounter, log: log, mux: http.NewServeMux()}
	handle(h, "status", h.status)
	handle(h, "mount", h.mount)
	handle(h, "unmount", h.unmount)
	handle(h, "stop", h.stop)
	handle(h, "cat", h.cat)
	handle(h, "put", h.put)
	handle(h, "ls", h.ls)
	handle(h, "rm", h.rm)
	handle(h, "mv", h.mv)
	handle(h, "mkdir", h.mkdir)
	handle(h, "log", h.logOf)
	handle(h, "show", h.show)
	handle(h, "diff", h.diff)
	handle(h, "blame", h.blame)
	handle(h, "revert", h.revert)
	handle(h, "restore", h.restore)
	handle(h, "conflicts", h.conflicts)
	handle(h, "conflict", h.conflict)
	handle(h, "conflict-apply", h.conflictApply)
	handle(h, "conflict-drop", h.conflictDrop)
	handle(h, "tail", h.tail)
	handle(h, "verify", h.verify)
	handle(h, "fsck", h.fsck)
	handle(h, "explain", h.explain)
	handle(h, "reload", h.reload)
	return h
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	h.mux.ServeHTTP(w, r)
}

// handle registers a call: POST /v1/NAME with a JSON body, decoded strictly.
func handle[In, Out any](h *Handler, name string, fn func(context.Context, In) (Out, error)) {
	h.mux.HandleFunc("POST /v1/"+name, func(w http.ResponseWriter, r *http.Request) {
		var in In
		dec := json.NewDecoder(r.Body)
		dec.DisallowUnknownFields()
		var out any
		err := dec.Decode(&in)
		if err != nil && !errors.Is(err, io.EOF) {
			err = fmt.Errorf("%w: %w", errBadRequest, err)
		} else {
			out, err = fn(r.Context(), in)
		}
		status := http.StatusOK
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			p, code := AsProblem(err)
			if p.Kind == "internal" {
				h.log.Error("call failed", "call", name, "error", err)
			}
			out, status = p, code
			w.Header().Set("Content-Type", "application/problem+json")
		}
		w.WriteHeader(status)
		if err := json.NewEncoder(w).Encode(out); err != nil {
			h.log.Debug("reply was not sent", "call", name, "error", err)
		}
	})
}

type peerKey struct{}

// WithPeer notes whose connection it is: the uid of SO_PEERCRED.
func WithPeer(ctx context.Context, uid uint32) context.Context {
	return context.WithValue(ctx, peerKey{}, uid)
}

// peer is the view of the caller itself.
func (h *Handler) peer(ctx context.Context) (*backend.View, error) {
	uid, ok := ctx.Value(peerKey{}).(uint32)
	if !ok {
		return nil, fmt.Errorf("caller %w", backend.ErrUnknown)
	}
	p, ok := h.mem.Policy().PrincipalByUID(uid)
	if !ok {
		return nil, fmt.Errorf("uid %d %w: give it to somebody in %s (uids: [%d])", uid, backend.ErrUnknown, backend.RegistryFile, uid)
	}
	return h.mem.View(p.ID, policy.Attested{Mount: "cli", UID: uid})
}

// view is that of whom the call acts as, if the caller may.
func (h *Handler) view(ctx context.Context, who Who) (*backend.View, backend.Caller, error) {
	v, err := h.peer(ctx)
	if err != nil {
		return nil, backend.Caller{}, err
	}
	if who.As != "" && who.As != v.Principal().ID {
		if err := v.MayMount(ctx, h.caller(v, who), who.As); err != nil {
			return nil, backend.Caller{}, err
		}
		if v, err = h.mem.View(who.As, policy.Attested{Mount: "cli", UID: ctx.Value(peerKey{}).(uint32)}); err != nil {
			return nil, backend.Caller{}, err
		}
	}
	return v, h.caller(v, who), nil
}

func (h *Handler) caller(v *backend.View, who Who) backend.Caller {
	if who.Session == "" {
		who.Session = "cli"
	}
	return backend.Caller{Session: h.mem.Session(v.Principal().ID, who.Session), Proc: backend.Proc{Name: "memoryfs"},
		Claimed: policy.Claimed{Session: who.Session, Reason: who.Reason, Conversation: who.Conversation}}
}

// operator is whom the daemon's own process belongs to, or an admin: who could kill it may as well stop it in order,
// also when the registry has lost him.
func (h *Handler) operator(ctx context.Context, who Who) error {
	if uid, ok := ctx.Value(peerKey{}).(uint32); ok && uid == uint32(os.Getuid()) {
		return nil
	}
	_, err := h.admin(ctx, who)
	return err
}

// admin asks for the right to see and steer the daemon.
func (h *Handler) admin(ctx context.Context, who Who) (*backend.View, error) {
	v, c, err := h.view(ctx, who)
	if err != nil {
		return nil, err
	}
	return v, v.MayAdmin(ctx, c)
}

type none struct{}

func (h *Handler) status(ctx context.Context, _ Who) (StatusReply, error) {
	if err := h.operator(ctx, Who{}); err != nil {
		if _, err := h.peer(ctx); err != nil {
			return StatusReply{}, err
		}
	}
	s := StatusReply{Status: h.mem.Status(ctx), Mounts: []MountInfo{}}
	if h.mounter != nil {
		s.Daemon, s.PID, s.Mounts = true, os.Getpid(), h.mounter.Mounts()
	}
	return s, nil
}

func (h *Handler) mount(ctx context.Context, spec MountSpec) (MountInfo, error) {
	if h.mounter == nil {
		return MountInfo{}, fmt.Errorf("%w without a daemon", errMount)
	}
	v, err := h.peer(ctx)
	if err != nil {
		return MountInfo{}, err
	}
	if spec.As == "" {
		spec.As = v.Principal().ID
	}
	c := h.caller(v, spec.Who)
	if spec.Shared {
		err, spec.As = v.MayAdmin(ctx, c), "" // it lets every uid of the registry in
	} else {
		err = v.MayMount(ctx, c, spec.As)
	}
	if err != nil {
		return MountInfo{}, err
	}
	if err := h.mounter.Mount(ctx, spec); err != nil {
		return MountInfo{}, fmt.Errorf("%w: %w", errMount, err)
	}
	rec := audit.Record{Kind: "mount", Op: "mount", Mount: spec.Dir.String(), Principal: spec.As, OnBehalf: v.Principal().ID, Session: spec.Session, Reason: spec.Reason}
	if err := h.record(ctx, rec); err != nil { // a mount changes nothing; a full disk must not keep readers out
		h.log.Error("the mount could not be recorded", "dir", spec.Dir, "error", err)
	}
	return MountInfo{Dir: spec.Dir, Principal: spec.As, Session: spec.Session, Shared: spec.Shared}, nil
}

func (h *Handler) unmount(ctx context.Context, spec MountSpec) (none, error) {
	if h.mounter != nil {
		for _, m := range h.mounter.Mounts() {
			if m.Dir != spec.Dir {
				continue
			}
			if err := h.mayUnmount(ctx, m, spec.Who); err != nil {
				return none{}, err
			}
			if err := h.mounter.Unmount(ctx, string(m.Dir)); err != nil {
				return none{}, fmt.Errorf("%w: %w", errMount, err)
			}
			return none{}, nil
		}
	}
	return none{}, fmt.Errorf("%s is no mount of this daemon: %w", spec.Dir, backend.ErrNotExist)
}

// mayUnmount: the operator, and whoever may mount as the mount's principal.
func (h *Handler) mayUnmount(ctx context.Context, m MountInfo, who Who) error {
	if h.operator(ctx, who) == nil {
		return nil
	}
	v, err := h.peer(ctx)
	if err != nil {
		return err
	}
	if m.Principal == "" {
		return v.MayAdmin(ctx, h.caller(v, who))
	}
	return v.MayMount(ctx, h.caller(v, who), m.Principal)
}

func (h *Handler) stop(ctx context.Context, who Who) (none, error) {
	if err := h.operator(ctx, who); err != nil {
		return none{}, err
	}
	if h.mounter != nil {
		h.mounter.Stop()
	}
	return none{}, nil
}
