// Package invoicing tests the program in examples/invoicing: it and its cluster are killed
// again and again, all nodes are lost once, and the numbers of its invoices have no hole that
// the cluster cannot explain.
package invoicing

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.RemoveBinary()
	os.Exit(code)
}

// countVariable is what says how many invoices are written.
const countVariable = "IDNODE_E2E_INVOICES"

// steps are the steps of the program, before each of which it is killed in turn.
var steps = []string{"store", "take", "keep", "confirm", "finish"}

// TestInvoicesHaveNoHole: two of the programs write one database, and each ends before one
// of its steps, or is killed at any moment, until all invoices are numbered. Meanwhile
// leaders are killed and cut off. In the middle all nodes are lost, and a backup is restored
// that is older than the books. Books and series agree at the end: what is on no invoice is
// voided.
func TestInvoicesHaveNoHole(t *testing.T) {
	tier.Long(t)
	count := 100_000
	if s := os.Getenv(countVariable); s != "" {
		var err error
		if count, err = strconv.Atoi(s); err != nil {
			t.Fatalf("%s: %v", countVariable, err)
		}
	}
	c := harness.StartCluster(t, harness.Config{})
	harness.Eventually(t, 20*time.Second, "a series", func(ctx context.Context) error {
		_, err := c.Nodes[0].Series.DefineSeries(ctx, &idnodev1.DefineSeriesRequest{
			Name: "invoices", Definition: &idnodev1.SeriesDefinition{Format: "INV-{number:8}{check:damm}"},
		})
		return err
	})
	begin := time.Now()
	o := &office{program: build(t), cluster: c, dir: t.TempDir(), count: strconv.Itoa(count)}
	backup := filepath.Join(o.dir, "a.backup")
	faults := o.untilHalf(t, backup, int64(count))
	o.loseAll(t, backup)
	all := o.start(t.Context(), t)
	faults += trouble(t, o.cluster, all)
	<-all
	t.Logf("%d invoices in %s; the programs ended %d times before their time, and the cluster had %d faults",
		count, time.Since(begin).Round(time.Second), o.ends.Load(), faults)
	c = o.cluster
	c.WaitReady(t)
	c.Agree(t)
	var voided int64
	for _, n := range c.Nodes {
		n.VerifySeries(t, "invoices")
		res, err := n.Series.ReportSeries(t.Context(), &idnodev1.ReportSeriesRequest{Series: "invoices"})
		if err != nil || len(res.GetScopes()) != 1 {
			t.Fatalf("node %s: %v, %v", n.Tag, res, err)
		}
		x := res.GetScopes()[0]
		if voided = x.GetVoided(); x.GetConfirmed() != int64(count) || x.GetLast() != int64(count)+voided {
			t.Errorf("node %s: %v", n.Tag, x)
		}
	}
	if out, want := o.ask(t, nil, "audit", fmt.Sprint(voided)), fmt.Sprintf("ok: 1 to %d, each once, %d of them on no invoice\n",
		int64(count)+voided, voided); out != want {
		t.Errorf("the audit says %s, want %s", out, want)
	}
}

// build makes the program, which is a module of its own.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "invoicing")
	cmd := exec.Command("go", "build", "-o", program, ".")
	cmd.Dir = filepath.Join("..", "..", "..", "examples", "invoicing")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// office is where the programs run, with the database that they share.
type office struct {
	program, dir, count string
	cluster             *harness.Cluster
	// ends counts the processes that ended before their time.
	ends atomic.Int64
}

// command is one process of the program. It is killed when ctx ends.
func (o *office) command(ctx context.Context, args ...string) *exec.Cmd {
	args = append([]string{"-db", filepath.Join(o.dir, "invoices.db"), "-endpoints", strings.Join(o.endpoints(), ",")}, args...)
	cmd := exec.CommandContext(ctx, o.program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

func (o *office) endpoints() (list []string) {
	for _, n := range o.cluster.Nodes {
		list = append(list, n.GRPC)
	}
	return list
}

// start begins the work of two clerks, and returns what is closed when it has ended.
func (o *office) start(ctx context.Context, t *testing.T) <-chan struct{} {
	var clerks sync.WaitGroup
	for i := range 2 {
		clerks.Go(func() { o.work(ctx, t, i) })
	}
	ended := make(chan struct{})
	go func() { clerks.Wait(); close(ended) }()
	return ended
}

// work starts one process after the other until one has found nothing left to do, or until
// parent ends.
func (o *office) work(parent context.Context, t *testing.T, clerk int) {
	for life := clerk; ; life++ {
		ctx, cancel := parent, context.CancelFunc(func() {})
		var args []string
		if turn := life % (len(steps) + 1); turn < len(steps) {
			args = []string{"-die-at", steps[turn]}
		} else {
			ctx, cancel = context.WithTimeout(ctx, time.Duration(50+life*37%400)*time.Millisecond)
		}
		cmd := o.command(ctx, append(args, "run", o.count)...)
		out, err := cmd.CombinedOutput()
		killed := ctx.Err() != nil
		cancel()
		switch state := cmd.ProcessState; {
		case parent.Err() != nil:
			return
		case state != nil && state.Success():
			return
		case state != nil && (state.ExitCode() == 9 || killed) && t.Context().Err() == nil:
			o.ends.Add(1)
		default:
			t.Errorf("the program ended with %v: %s", err, out)
			return
		}
	}
}

// trouble kills a leader, and cuts one off, in turn until done. It returns how often.
func trouble(t *testing.T, c *harness.Cluster, done <-chan struct{}) (faults int) {
	pause := func() (more bool) {
		select {
		case <-done:
			return false
		case <-time.After(time.Second):
			return true
		}
	}
	for ; pause(); faults++ {
		leader := c.Leader(t)
		if faults%2 == 0 {
			leader.Process.Kill()
			pause()
			leader.Start(t)
		} else {
			c.Isolate(leader)
			pause()
			c.Heal()
		}
		c.WaitReady(t)
	}
	return faults
}
