package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
)

// Client calls a daemon, or a handler in this process.
type Client struct {
	http *http.Client
}

// ErrNoDaemon: nobody answers at the socket.
var ErrNoDaemon = errors.New("no daemon runs for this store")

// Dial finds the daemon of a store. os.ErrNotExist if there is no such directory.
func Dial(storeDir string) (*Client, error) {
	if _, err := os.Stat(storeDir); err != nil {
		return nil, err
	}
	dial := func(ctx context.Context) (net.Conn, error) {
		path, done, err := short(storeDir)
		if err != nil {
			return nil, err
		}
		defer done()
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}
	c, err := dial(context.Background())
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, ErrNoDaemon
	}
	if err != nil {
		return nil, fmt.Errorf("reach the daemon: %w", err)
	}
	c.Close()
	t := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) }}
	return &Client{&http.Client{Transport: t}}, nil
}

// InProcess calls h directly, as this process's own uid.
func InProcess(h http.Handler) *Client {
	return &Client{&http.Client{Transport: direct{h}}}
}

type direct struct{ h http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := &recorder{header: http.Header{}, status: http.StatusOK}
	d.h.ServeHTTP(w, r.WithContext(WithPeer(r.Context(), uint32(os.Getuid()))))
	return &http.Response{StatusCode: w.status, Status: http.StatusText(w.status), Header: w.header, Body: io.NopCloser(&w.body), Request: r}, nil
}

// recorder is a ResponseWriter in memory.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(b []byte) (int, error) { return w.body.Write(b) }

// Call makes a call; out may be nil. A refusal or fault of the other side is a *Problem.
func (c *Client) Call(ctx context.Context, name string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://memoryfs/v1/"+name, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("the daemon does not answer: %w", err)
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(resp.Body)
	if resp.StatusCode != http.StatusOK {
		p := &Problem{}
		if err := dec.Decode(p); err != nil || p.Kind == "" {
			return fmt.Errorf("the daemon answers %s", resp.Status)
		}
		return p
	}
	if out == nil {
		return nil
	}
	return dec.Decode(out)
}
