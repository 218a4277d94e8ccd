package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// supervisor is the service manager that started this process and wants to hear
// from it, in the way systemd has documented for services of Type=notify: each
// message is one datagram of NAME=VALUE lines. A nil supervisor hears nothing.
type supervisor struct {
	socket *net.UnixAddr
	// watchdog is how long the supervisor waits for a sign of life before it kills
	// the process; 0 for no limit.
	watchdog time.Duration
}

// newSupervisor returns the supervisor that the environment names, or nil.
func newSupervisor(getenv func(string) string) (*supervisor, error) {
	path := getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	if path[0] != '/' && path[0] != '@' {
		return nil, fmt.Errorf("NOTIFY_SOCKET is %q, and only sockets in the file system and abstract ones are known", path)
	}
	s := &supervisor{socket: &net.UnixAddr{Name: path, Net: "unixgram"}}
	text := getenv("WATCHDOG_USEC")
	if text == "" || !forThisProcess(getenv("WATCHDOG_PID")) {
		return s, nil
	}
	microseconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || microseconds <= 0 {
		return nil, fmt.Errorf("WATCHDOG_USEC is %q, not a number of microseconds", text)
	}
	s.watchdog = time.Duration(microseconds) * time.Microsecond
	return s, nil
}

// forThisProcess says whether pid, if it is given, is this process: a variable
// that a parent left in the environment is for the parent.
func forThisProcess(pid string) bool { return pid == "" || pid == strconv.Itoa(os.Getpid()) }

// tell sends one message.
func (s *supervisor) tell(message string) error {
	conn, err := net.DialUnix(s.socket.Net, nil, s.socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(message))
	return err
}

// follow tells the supervisor that n serves, gives signs of life for as long as n
// gives them, and says at the end of ctx that n stops. It returns then, or when
// n ended before it was ready.
func (s *supervisor) follow(ctx context.Context, n server) error {
	if s == nil {
		return nil
	}
	if err := s.tell("STATUS=waiting for the cluster"); err != nil {
		return err
	}
	if n.Ready(ctx) == nil {
		if err := s.tell("READY=1\nSTATUS=serving at " + n.GRPCAddr()); err != nil {
			return err
		}
		if err := s.signs(ctx, n); err != nil {
			return err
		}
	}
	if ctx.Err() == nil {
		return nil
	}
	return s.tell("STOPPING=1\nSTATUS=stopping")
}

// signs tells until ctx ends that the process lives, twice as often as the
// supervisor wants to hear it. A node that hangs gives no more: what it is asked
// for takes the locks that all its calls take.
func (s *supervisor) signs(ctx context.Context, n server) error {
	if s.watchdog == 0 {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTicker(s.watchdog / 2)
	defer tick.Stop()
	for {
		n.Alive()
		if err := s.tell("WATCHDOG=1"); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
