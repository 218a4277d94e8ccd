// Package sdnotify tells the service manager that started this process how its node is,
// in the way that systemd has documented for services of Type=notify: each message is
// one datagram of NAME=VALUE lines.
package sdnotify

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// Manager is the service manager. A nil *Manager hears nothing.
type Manager struct {
	socket *net.UnixAddr
	// watchdog is how long the manager waits for a sign of life, or 0, before it kills the process.
	watchdog time.Duration
}

// Node is what the manager hears of.
type Node interface {
	// Ready returns when the node serves with a quorum.
	Ready(ctx context.Context) error
	// Alive returns why the node hangs, or nil; if it hangs badly, not at all.
	Alive() error
	GRPCAddr() string
}

// FromEnv returns the manager that the environment names, or nil.
func FromEnv(getenv func(string) string) (*Manager, error) {
	path := getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	if path[0] != '/' && path[0] != '@' {
		return nil, fmt.Errorf("NOTIFY_SOCKET is %q, and only sockets in the file system and abstract ones are known", path)
	}
	m := &Manager{socket: &net.UnixAddr{Name: path, Net: "unixgram"}}
	text, pid := getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID")
	if text == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) { // What a parent left in the environment is for the parent.
		return m, nil
	}
	microseconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || microseconds <= 0 {
		return nil, fmt.Errorf("WATCHDOG_USEC is %q, not a number of microseconds", text)
	}
	m.watchdog = time.Duration(microseconds) * time.Microsecond
	return m, nil
}

func (m *Manager) tell(message string) error {
	conn, err := net.DialUnix(m.socket.Net, nil, m.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(message))
	return err
}

// Follow tells the manager that n serves, gives signs of life for as long as n gives them, and
// says at the end of ctx that n stops. It returns then, or when n ended before it was ready.
func (m *Manager) Follow(ctx context.Context, n Node) error {
	if m == nil {
		return nil
	}
	if err := m.tell("STATUS=waiting for the cluster"); err != nil {
		return err
	}
	if n.Ready(ctx) == nil {
		if err := m.tell("READY=1\nSTATUS=serving at " + n.GRPCAddr()); err != nil {
			return err
		}
		if err := m.signs(ctx, n); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		return nil
	}
	return m.tell("STOPPING=1\nSTATUS=stopping")
}

// signs tells until ctx ends that the process lives, twice as often as the manager wants to hear
// it. A node that hangs gives no more: Alive takes the locks that all calls take.
func (m *Manager) signs(ctx context.Context, n Node) error {
	if m.watchdog == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(m.watchdog / 2)
	defer tick.Stop()
	for {
		if n.Alive() == nil {
			if err := m.tell("WATCHDOG=1"); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
