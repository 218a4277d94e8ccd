package matrix

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
)

// TestF36LogUnread: what becomes of the log stops nothing but the log. The reader of the
// leader's stops reading (etcd-io/etcd #22326), that of a follower's goes away
// (influxdata/influxdb #9210); then the other follower, whose end the leader logs on Raft's main
// goroutine, crashes and comes back. A hang-up ends no node either.
func TestF36LogUnread(t *testing.T) {
	c := harness.NewCluster(t, harness.Config{})
	logs := map[*harness.Node]*logPipe{}
	remove := func() { // What a failed test prints would wait for a pipe's end.
		for _, n := range c.Nodes {
			os.Remove(n.DataDir + ".log")
		}
	}
	start := func(n *harness.Node) {
		os.Remove(n.DataDir + ".log")
		logs[n] = newLogPipe(t, n.DataDir+".log")
		n.Start(t)
		t.Cleanup(remove)
	}
	for _, n := range c.Nodes {
		start(n)
	}
	c.WaitReady(t)
	r := record(t, c, deadline)
	t.Cleanup(remove)
	for i := range r.cycles(t, 2, 50) {
		leader := c.Leader(t)
		alone, crashed := c.Others(leader)[i%2], c.Others(leader)[1-i%2]
		r.traffic.Thick(t)
		alone.Process.Signal(t, syscall.SIGHUP)
		logs[alone].close()
		alone.Process.Signal(t, syscall.SIGHUP) // It logs this, to nobody.
		logs[leader].stop(t)
		crashed.Process.Kill()
		start(crashed)
		r.figures.gaps = append(r.figures.gaps, r.traffic.Probes(t, c.Nodes...)...)
		r.traffic.Thick(t)
		if !alone.Process.Running() {
			t.Fatal("a node has ended because nobody can read its log, or of a hang-up")
		}
		for _, n := range []*harness.Node{leader, alone} {
			n.Process.Signal(t, syscall.SIGTERM)
			if code := n.Process.Wait(t, 25*time.Second); code != 0 {
				t.Errorf("a node whose log nobody reads ended with %d", code)
			}
			start(n)
			c.WaitReady(t)
		}
	}
	remove()
	r.inTime(t, 3*time.Second, 5*time.Second, 10*time.Second)
	r.ends(t)
}

// logPipe is a pipe in the place of a node's log, and its reader.
type logPipe struct {
	path string
	// both keeps both ends open, so that nobody's opening waits.
	both *os.File
	// left is closed when the reader reads no more.
	left chan struct{}
}

func newLogPipe(t *testing.T, path string) *logPipe {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	both, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { both.Close() })
	p := &logPipe{path: path, both: both, left: make(chan struct{})}
	go func() {
		defer close(p.left)
		buffer := make([]byte, 4096)
		for {
			if _, err := both.Read(buffer); err != nil {
				return
			}
		}
	}()
	return p
}

// close leaves the log without a reader: a write fails, with a SIGPIPE.
func (p *logPipe) close() {
	p.both.Close()
	<-p.left
}

// stop leaves the log with a reader that does not read, and with no room for a byte.
func (p *logPipe) stop(t *testing.T) {
	t.Helper()
	if err := p.both.SetReadDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	<-p.left
	fd, err := syscall.Open(p.path, syscall.O_WRONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	for _, size := range []int{4096, 1} { // A write of so many bytes is done whole, or not at all.
		for err = nil; err == nil; {
			_, err = syscall.Write(fd, make([]byte, size))
		}
		if !errors.Is(err, syscall.EAGAIN) {
			t.Fatal(err)
		}
	}
}
