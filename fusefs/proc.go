package fusefs

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"memoryfs/backend"
)

// process is what is known of a calling process: resolved once, at its first OPEN. What it says of itself (session,
// reason, conversation) is a claim, never a right.
type process struct {
	proc         backend.Proc
	session      string
	reason       string
	conversation string
}

// procTable resolves thread ids to processes. The kernel's header carries a thread id; numbers are reused; so the cache
// is keyed by the pidfd's inode number where the kernel has one per process (>= 6.9), else by id and start time.
type procTable struct {
	mu    sync.Mutex
	known map[string]process
}

const (
	maxProcs     = 4096 // then the cache starts again
	maxAncestors = 32
	pidfsMagic   = 0x50494446 // PIDFS_MAGIC, include/uapi/linux/magic.h
)

// lookup resolves a thread id. One that has gone, or 0 (outside this pid namespace, or the kernel itself), is a process
// that is not known: the zero value.
func (t *procTable) lookup(tid uint32) process {
	if tid == 0 {
		return process{}
	}
	key, ok := threadKey(tid)
	if !ok {
		return process{}
	}
	t.mu.Lock()
	p, ok := t.known[key]
	t.mu.Unlock()
	if ok {
		return p
	}
	p = resolve(tid)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil || len(t.known) >= maxProcs {
		t.known = map[string]process{}
	}
	t.known[key] = p
	return p
}

// threadKey names a thread uniquely over the reuse of ids.
func threadKey(tid uint32) (string, bool) {
	fd, err := unix.PidfdOpen(int(tid), unix.O_EXCL) // PIDFD_THREAD has O_EXCL's value
	if err == nil {
		defer unix.Close(fd)
		var fs unix.Statfs_t
		var st unix.Stat_t
		if unix.Fstatfs(fd, &fs) == nil && fs.Type == pidfsMagic && unix.Fstat(fd, &st) == nil {
			return strconv.FormatUint(st.Ino, 36), true
		}
	}
	s, ok := readStat(strconv.Itoa(int(tid)))
	return fmt.Sprintf("%d@%s", tid, s.start), ok
}

// stat is what is needed of /proc/PID/stat (proc(5)).
type stat struct {
	comm, ppid, sid, start string
}

func readStat(pid string) (stat, bool) {
	raw, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return stat{}, false
	}
	open, end := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if open < 0 || end < open {
		return stat{}, false
	}
	f := strings.Fields(string(raw[end+1:])) // f[0] is field 3, state
	if len(f) < 20 {
		return stat{}, false
	}
	return stat{comm: string(raw[open+1 : end]), ppid: f[1], sid: f[3], start: f[19]}, true
}

// resolve reads /proc for the process of a thread.
func resolve(tid uint32) process {
	pid := tgid(tid)
	s, ok := readStat(pid)
	if pid == "" || !ok {
		return process{}
	}
	p := process{proc: backend.Proc{Key: procKey(pid, s), Name: s.comm, Alive: func() bool {
		now, ok := readStat(pid)
		return ok && now.start == s.start
	}}}
	p.claims(pid)
	self := strconv.Itoa(os.Getpid())
	for up, n := s.ppid, 0; up != "0" && up != "1" && up != self && n < maxAncestors; n++ {
		us, ok := readStat(up)
		if !ok {
			break
		}
		p.proc.Ancestors = append(p.proc.Ancestors, procKey(up, us))
		p.claims(up)
		up = us.ppid
	}
	if p.session == "" {
		p.session = container(pid)
	}
	if p.session == "" {
		p.session = "sid-" + s.sid
		if leader, ok := readStat(s.sid); ok {
			p.session += "-" + leader.start
		}
	}
	return p
}

func procKey(pid string, s stat) string { return pid + "@" + s.start }

// tgid is the process id of a thread, "" if it has gone.
func tgid(tid uint32) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if err != nil {
		return ""
	}
	for line := range strings.SplitSeq(string(raw), "\n") {
		if v, ok := strings.CutPrefix(line, "Tgid:"); ok {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// SessionOf is the session that a mount without --session takes a process for.
func SessionOf(pid int) string {
	return (&procTable{}).lookup(uint32(pid)).session
}

// claims takes from a process's environment what its children have not said already.
func (p *process) claims(pid string) {
	if p.session != "" && p.reason != "" && p.conversation != "" {
		return
	}
	raw, err := os.ReadFile("/proc/" + pid + "/environ")
	if err != nil {
		return
	}
	for kv := range bytes.SplitSeq(raw, []byte{0}) {
		name, value, _ := strings.Cut(string(kv), "=")
		switch name {
		case "MEMORYFS_SESSION":
			setFirst(&p.session, value)
		case "MEMORYFS_REASON":
			setFirst(&p.reason, value)
		case "MEMORYFS_CONVERSATION":
			setFirst(&p.conversation, value)
		}
	}
}

func setFirst(to *string, value string) {
	if *to == "" {
		*to = value
	}
}

// container names the container that a process runs in, by its cgroup: the long hex id that container runtimes put
// into it. "" outside of one.
func container(pid string) string {
	raw, err := os.ReadFile("/proc/" + pid + "/cgroup")
	if err != nil {
		return ""
	}
	for _, word := range strings.FieldsFunc(string(raw), func(r rune) bool { return r < '0' || r > '9' && r < 'a' || r > 'f' }) {
		if len(word) == 64 {
			return "container-" + word[:12]
		}
	}
	return ""
}
