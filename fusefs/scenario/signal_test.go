package scenario_test

import "testing"

// interrupted saves and renames while a timer signal arrives every 0.3 ms, as Go's SIGURG and other runtimes' timers do.
// No call may fail with EINTR: programs do not repeat close(2) and rename(2).
const interrupted = `
import ctypes, os, signal, sys
signal.signal(signal.SIGALRM, lambda *a: None)
signal.siginterrupt(signal.SIGALRM, True)
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    r = getattr(libc, name)(*args)
    if r < 0:
        print(name, os.strerror(ctypes.get_errno())); os._exit(1)
    return r
a, b = (sys.argv[1] + '/a.md').encode(), (sys.argv[1] + '/b.md').encode()
signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
for i in range(300):
    text = b'round %d\n' % i
    fd = call('open', a, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    call('write', fd, text, len(text))
    call('close', fd)
    call('rename', a, b)
    call('rename', b, a)
signal.setitimer(signal.ITIMER_REAL, 0)
assert open(a, 'rb').read() == b'round 299\n'
`

func TestSignalsDoNotInterrupt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.mount("agent-104") + "/agents/agent-104"
	if r := run(t, nil, "python3", "-c", interrupted, m); r.code != 0 {
		t.Fatalf("exits %d: %s", r.code, r.out)
	}
}
