package matrix

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/history/check"
	"github.com/idnode/idnode/test/tier"
)

const (
	// answered bounds every call on a node that runs, with any fault: the 2 s
	// that a call waits for a leader, and what the call itself takes.
	answered = 2500 * time.Millisecond
	// deadline is that of the callers, far above.
	deadline = 10 * time.Second
	// silent is the callers' deadline where a node is silent, so that nobody but
	// the caller can end a call.
	silent = 2 * time.Second
)

// row is one row of the table, under test.
type row struct {
	*harness.Run
	c       *harness.Cluster
	traffic *harness.Traffic
	figures *figures
	// random is what the mixture draws from.
	random *rand.Rand
}

// start starts a cluster with traffic on all nodes, whose calls have the given
// deadline.
func start(t *testing.T, cfg harness.Config, deadline time.Duration) *row {
	t.Helper()
	return record(t, harness.StartCluster(t, cfg), deadline)
}

// record does the same with a cluster that serves already.
func record(t *testing.T, c *harness.Cluster, deadline time.Duration) *row {
	t.Helper()
	r := &row{c: c, figures: &figures{name: t.Name()}}
	longest := answered
	if deadline < answered {
		longest = deadline + 500*time.Millisecond
	}
	r.Run = harness.Record(t, r.c, within(longest), r.figures.take)
	t.Cleanup(func() { r.figures.done(t, r.Repeats()) })
	r.traffic = r.Start(t, deadline)
	return r
}

// ends lets the traffic end, and judges what it saw. All nodes must run.
func (r *row) ends(t *testing.T) {
	t.Helper()
	r.c.WaitReady(t)
	r.traffic.Thick(t)
	r.traffic.Stop()
	r.c.Agree(t)
	r.End(t)
}

// mediumFactor is how many times as often as by default a medium run repeats faults.
const mediumFactor = 5

// quickFraction is how many times as few faults the quick tier has.
const quickFraction = 10

// form is how long the rows are run: IDNODE_MATRIX is full for as long as the table
// promises, which takes hours, or medium for about half an hour.
func form() string { return os.Getenv("IDNODE_MATRIX") }

// slack is how many times as long as promised, and how much less, the short form
// lets things be. It runs on any build machine, beside whatever else the machine
// does, and there the faults and the judgement of every answer are the same, but
// times only tell a hang from a busy machine. The longer forms want a quiet machine,
// and all that is promised.
func slack() float64 {
	if form() == "" {
		return 2
	}
	return 1
}

// within is how long something may take that is promised within d.
func within(d time.Duration) time.Duration { return time.Duration(slack() * float64(d)) }

// cycles is how often the row repeats its fault: few times by default, and as
// often as the table promises in a full run.
func (r *row) cycles(t *testing.T, few, full int) int {
	t.Helper()
	r.figures.cycles = few
	if !tier.All() {
		r.figures.cycles = max(1, few/quickFraction)
	}
	switch form() {
	case "full":
		r.figures.cycles = full
	case "medium":
		r.figures.cycles = min(full, mediumFactor*few)
	}
	if text := os.Getenv("IDNODE_E2E_CYCLES"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		r.figures.cycles = n
	}
	return r.figures.cycles
}

// after waits for what a fault needs by its nature: time.
func after(d time.Duration) { <-time.After(d) }

// restart starts nodes that were killed, and waits until all serve.
func (r *row) restart(t *testing.T, nodes ...*harness.Node) {
	t.Helper()
	for _, n := range nodes {
		n.Start(t)
	}
	r.c.WaitReady(t)
}

// serves says whether a node says that it serves.
func serves(ctx context.Context, n *harness.Node) bool {
	r, err := n.Health.Check(ctx, &healthv1.HealthCheckRequest{})
	return err == nil && r.Status == healthv1.HealthCheckResponse_SERVING
}

// leads says whether a node that runs says that it leads.
func leads(t *testing.T, n *harness.Node) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
	return err == nil && s.LeaderTag == n.Tag
}

// failsOver waits until n gives an identity again and notes how long it took.
func (r *row) failsOver(t *testing.T, n *harness.Node) {
	t.Helper()
	r.figures.gaps = append(r.figures.gaps, r.traffic.Probe(t, n))
}

// inTime checks how long it took to go on after a lost leader: half of the times
// at most p50, 99 % p99, all of them longest.
func (r *row) inTime(t *testing.T, p50, p99, longest time.Duration) {
	t.Helper()
	f := r.figures
	for _, bound := range []struct {
		percent, atLeast int
		most             time.Duration
	}{
		// A few tell little of a median, and less than a hundred nothing of a p99: an
		// election may be lost and held again.
		{50, 20, p50}, {99, 100, p99}, {100, 1, longest},
	} {
		if got := f.quantile(bound.percent); len(f.gaps) >= bound.atLeast && got > within(bound.most) {
			t.Errorf("%d %% of the fail-overs took up to %s, want at most %s", bound.percent, got, within(bound.most))
		}
	}
	t.Logf("%d fail-overs: p50 %s, p99 %s, max %s", len(f.gaps), f.quantile(50), f.quantile(99), f.quantile(100))
}

// figures are what one row measured.
type figures struct {
	name    string
	cycles  int
	repeats int64
	report  *check.Report
	gaps    []time.Duration
	outcome string
	// note stands behind the row's name; it may be empty.
	note string
}

func (f *figures) take(r *check.Report) { f.report = r }

// quantile is the time within which this percentage of the fail-overs were done.
func (f *figures) quantile(percent int) time.Duration {
	return harness.QuantileOfTimes(f.gaps, 10*percent)
}
