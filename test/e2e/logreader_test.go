package e2e

import (
	"context"
	"errors"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// TestTheLogsReader: what becomes of the log stops nothing but the log. The reader of the
// leader's stops reading (etcd-io/etcd #22326), that of a follower's goes away
// (influxdata/influxdb #9210); then the other follower, whose end the leader logs on Raft's main
// goroutine, crashes and comes back. A hang-up ends no node either.
func TestTheLogsReader(t *testing.T) {
	c := harness.NewCluster(t, harness.Config{})
	logs := map[*harness.Node]*logPipe{}
	start := func(n *harness.Node) {
		n.Start(t)
		t.Cleanup(func() { os.Remove(n.DataDir + ".log") }) // What a failed test prints would wait for its end.
	}
	for _, n := range c.Nodes {
		logs[n] = newLogPipe(t, n.DataDir+".log")
		start(n)
	}
	c.WaitReady(t)
	leader := c.Leader(t)
	others := slices.DeleteFunc(slices.Clone(c.Nodes), func(n *harness.Node) bool { return n == leader })
	alone, crashed := others[0], others[1]

	before := oneID(t, alone, "users/").GetBlocks()[0].GetLast()
	alone.Process.Signal(t, syscall.SIGHUP)
	logs[alone].close()
	alone.Process.Signal(t, syscall.SIGHUP) // It logs this, to nobody.
	logs[leader].stop(t)
	crashed.Process.Kill()
	start(crashed)
	for _, n := range c.Nodes {
		harness.Eventually(t, changed, "an identity at "+n.Tag, func(ctx context.Context) error {
			_, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "orders|"})
			return err
		})
	}
	if !alone.Process.Running() {
		t.Fatal("a node has ended because nobody can read its log, or of a hang-up")
	}
	if after := oneID(t, alone, "users/").GetBlocks()[0].GetFirst(); after != before+1 {
		t.Errorf("its server-side ids went from %d to %d", before, after)
	}
	leader.Process.Signal(t, syscall.SIGTERM)
	if code := leader.Process.Wait(t, drained); code != 0 {
		t.Errorf("a node whose log nobody reads ended with %d", code)
	}
}

func oneID(t *testing.T, n *harness.Node, template string) *idnodev1.GenerateResponse {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), changed)
	defer cancel()
	r, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: template})
	if err != nil {
		t.Fatal(err)
	}
	return r
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
