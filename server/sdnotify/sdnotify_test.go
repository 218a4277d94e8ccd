package sdnotify

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// manager is the socket of a service manager, and what came in there.
type manager struct {
	path     string
	messages chan string
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "notify-") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &manager{path: filepath.Join(dir, "socket"), messages: make(chan string, 100)}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	go func() {
		defer close(m.messages)
		buffer := make([]byte, 4096)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			m.messages <- string(buffer[:n])
		}
	}()
	return m
}

// next waits for a message that has the line.
func (m *manager) next(t *testing.T, line string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		select {
		case got := <-m.messages:
			if slices.Contains(strings.Split(got, "\n"), line) {
				return
			}
		case <-timeout:
			t.Fatalf("no message with the line %q", line)
		}
	}
}

func TestManagerOfTheEnvironment(t *testing.T) {
	pid := strconv.Itoa(os.Getpid())
	for name, tc := range map[string]struct {
		env      map[string]string
		watchdog time.Duration
		none     bool
		err      string
	}{
		"none":            {none: true},
		"only a watchdog": {env: map[string]string{"WATCHDOG_USEC": "5"}, none: true},
		"a socket":        {env: map[string]string{"NOTIFY_SOCKET": "/run/notify"}},
		"abstract":        {env: map[string]string{"NOTIFY_SOCKET": "@notify"}},
		"of another kind": {env: map[string]string{"NOTIFY_SOCKET": "vsock:2:1234"}, err: "NOTIFY_SOCKET"},
		"watched":         {env: map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "30000000"}, watchdog: 30 * time.Second},
		"watched by pid": {
			env:      map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": pid},
			watchdog: time.Millisecond,
		},
		"another is watched": {env: map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1" + pid}},
		"no time":            {env: map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "soon"}, err: "WATCHDOG_USEC"},
		"no time at all":     {env: map[string]string{"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": "0"}, err: "WATCHDOG_USEC"},
	} {
		s, err := FromEnv(func(key string) string { return tc.env[key] })
		switch {
		case tc.err != "":
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil || (s == nil) != tc.none:
			t.Errorf("%s: %v, %v", name, s, err)
		case s != nil && s.watchdog != tc.watchdog:
			t.Errorf("%s: watchdog %s", name, s.watchdog)
		}
	}
}

// fakeNode is a node whose Ready returns an error.
type fakeNode struct{ ready error }

func (n fakeNode) Ready(context.Context) error { return n.ready }
func (fakeNode) Alive() error                  { return nil }
func (fakeNode) GRPCAddr() string              { return "127.0.0.1:7400" }

// hanging is a node that serves and then hangs.
type hanging struct {
	fakeNode
	alive func() error
}

func (h hanging) Alive() error { return h.alive() }

// TestNoSignOfLifeFromANodeThatHangs: it is for the watchdog to end it.
func TestNoSignOfLifeFromANodeThatHangs(t *testing.T) {
	for name, alive := range map[string]func() error{
		"a part of it": func() error { return errors.New("raft stands still") },
		"all of it":    func() error { select {} },
	} {
		m := newManager(t)
		s := &Manager{socket: &net.UnixAddr{Name: m.path, Net: "unixgram"}, watchdog: time.Millisecond}
		go func() { _ = s.Follow(t.Context(), hanging{alive: alive}) }()
		m.next(t, "READY=1")
		select {
		case got := <-m.messages:
			t.Errorf("%s: it says %q", name, got)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestNodeThatEndsBeforeItServes never says that it serves.
func TestNodeThatEndsBeforeItServes(t *testing.T) {
	m := newManager(t)
	s := &Manager{socket: &net.UnixAddr{Name: m.path, Net: "unixgram"}}
	if err := s.Follow(t.Context(), fakeNode{ready: errors.New("the node has ended")}); err != nil {
		t.Fatal(err)
	}
	m.next(t, "STATUS=waiting for the cluster")
	select {
	case got := <-m.messages:
		t.Errorf("it says %q", got)
	default:
	}
}

// TestManagerThatIsGone is an error for the log; the node goes on.
func TestManagerThatIsGone(t *testing.T) {
	s := &Manager{socket: &net.UnixAddr{Name: filepath.Join(t.TempDir(), "none"), Net: "unixgram"}}
	if err := s.Follow(t.Context(), fakeNode{}); err == nil {
		t.Error("no error")
	}
}
