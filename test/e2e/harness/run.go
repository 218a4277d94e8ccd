package harness

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/history/check"
)

// Run is the record of one test with a cluster: the seed from which its traffic
// and its faults are drawn, and the history of every call, which is judged when
// the test ends, by the checkers of test/history and by Porcupine. If it fails, history,
// logs and Porcupine's pages are kept, and the seed and the command to see it again are
// printed; in the folder IDNODE_E2E_KEEP they are
// kept always. Safe for concurrent use.
type Run struct {
	// Seed is from IDNODE_E2E_SEED, or drawn.
	Seed uint64
	// Stalls is how long the machine stood still; the checker knows of it too.
	Stalls *Stalls

	cluster  *Cluster
	recorder *history.Recorder
	options  check.Options
	file     *os.File
	// dir holds the history, and the nodes' logs if the test failed.
	dir string
	// ok counts the answered calls that the cluster had to agree on, and unsure
	// all that were not answered.
	ok, unsure atomic.Int64
	// requests, repeats and callers count what was made so far.
	requests, repeats, callers, documents atomic.Int64
	traffic                               *Traffic
	// onReport is called with the verdict; may be nil.
	onReport func(*check.Report)

	begun time.Time
	ended sync.Once

	mu      sync.Mutex
	watches []*Watch
	// refused counts the calls that certainly failed, by their codes.
	refused map[string]int64
	// slowest is how long the slowest of them took, by the same codes; time in which
	// the machine stood still is not counted.
	slowest map[string]time.Duration
	// lastOK is when the cluster last agreed on something, and outage the longest
	// time between two such moments.
	lastOK time.Time
	outage time.Duration
}

// noQuorum are the codes with which a call may end that was made without a
// quorum. The last ones come from the caller's own side: from the Go client, or
// from a deadline shorter than what a node may take.
var noQuorum = []string{
	"NO_QUORUM", "LEADER_UNREACHABLE", "OUTCOME_UNKNOWN", "STARTING", "STOPPING", "OVERLOADED",
	"NO_ENDPOINT", "DEADLINE_EXCEEDED", "UNAVAILABLE",
}

// searchFor is how long Porcupine searches for an order of the calls on each counter.
const searchFor = time.Second

// Record begins the history of a test with the cluster. Calls may take as long as
// longest says; onReport, which may be nil, gets the verdict.
func Record(t testing.TB, c *Cluster, longest time.Duration, onReport func(*check.Report)) *Run {
	t.Helper()
	dir, err := os.MkdirTemp(os.Getenv("IDNODE_E2E_KEEP"), "idnode-"+strings.ReplaceAll(t.Name(), "/", "-")+"-")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(dir, "history.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	r := &Run{
		Seed: seed(t), cluster: c, file: file, dir: dir, onReport: onReport, begun: time.Now(),
		options: check.Options{Longest: longest, Refusals: noQuorum, Search: searchFor}, refused: make(map[string]int64),
		slowest: make(map[string]time.Duration),
	}
	r.recorder = history.NewRecorder(file, r.count)
	r.Stalls = measureStalls(t, r.stalled)
	c.run = r
	// In case the test does not get to its end; nodes that were started again are
	// gone by then.
	t.Cleanup(func() { r.End(t) })
	return r
}

func seed(t testing.TB) uint64 {
	t.Helper()
	text := os.Getenv("IDNODE_E2E_SEED")
	if text == "" {
		return rand.Uint64()
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Longest changes how long a call may take, for the whole run.
func (r *Run) Longest(d time.Duration) { r.options.Longest = d }

// Random is a source of its own for each purpose, drawn from the seed.
func (r *Run) Random(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(r.Seed, purpose)) }

// OK is how many calls were answered so far, but for server-side ids.
func (r *Run) OK() int64 { return r.ok.Load() }

// Repeats is how many calls were repeated with their request id so far.
func (r *Run) Repeats() int64 { return r.repeats.Load() }

// Refused is how many calls certainly failed with the code so far.
func (r *Run) Refused(code string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused[code]
}

// SlowestRefusal is how long the slowest call took that certainly failed with the
// code.
func (r *Run) SlowestRefusal(code string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.slowest[code]
}

// NotAnswered is how many calls failed or have an unknown outcome so far.
func (r *Run) NotAnswered() int64 { return r.unsure.Load() }

func (r *Run) count(op *history.Op) {
	switch {
	case !op.Kind.IsCall():
	case op.Outcome != history.OK:
		r.unsure.Add(1)
	case op.Kind != history.Etag:
		r.ok.Add(1)
		r.served()
	}
	r.mu.Lock()
	if op.Outcome == history.Failed {
		r.refused[op.Code]++
		if took := time.Duration(op.Return - op.Call); took > r.slowest[op.Code] {
			now := time.Now()
			r.slowest[op.Code] = max(r.slowest[op.Code], took-r.Stalls.Between(now.Add(-took), now))
		}
	}
	watches := r.watches
	r.mu.Unlock()
	for _, w := range watches {
		w.see(op)
	}
}

// served notes that the cluster agreed on something.
func (r *Run) served() {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if gap := now.Sub(r.lastOK); !r.lastOK.IsZero() && gap > r.outage {
		r.outage = max(r.outage, gap-r.Stalls.Between(r.lastOK, now))
	}
	r.lastOK = now
}

// Outage is the longest time in which no node gave anything that the cluster must
// agree on, since it was last asked for; time in which the machine stood still is
// not counted.
func (r *Run) Outage() time.Duration {
	r.served()
	r.mu.Lock()
	defer r.mu.Unlock()
	longest := r.outage
	r.outage = 0
	return longest
}

func (r *Run) stalled(late time.Duration) {
	p := r.recorder.Begin(history.Op{Kind: history.Stall})
	p.Call = max(p.Call-int64(late), 0)
	p.End(history.OK, "")
}

// lost records that nodes have no quorum from now on; none means all of them.
func (r *Run) lost(nodes ...*Node) { r.event(history.Lost, nodes) }

// back records that the same is over, or may be, from now on.
func (r *Run) back(nodes ...*Node) { r.event(history.Back, nodes) }

func (r *Run) event(kind history.Kind, nodes []*Node) {
	if r == nil {
		return
	}
	if len(nodes) == 0 {
		r.recorder.Event(history.Op{Kind: kind})
	}
	for _, n := range nodes {
		r.recorder.Event(history.Op{Kind: kind, Node: n.Tag})
	}
}

// End stops the traffic, reads what every counter holds while the nodes still
// run, and judges the history. Calling it again does nothing.
func (r *Run) End(t testing.TB) {
	t.Helper()
	r.ended.Do(func() { r.end(t) })
}

func (r *Run) end(t testing.TB) {
	if r.traffic != nil {
		r.traffic.end(t)
	}
	if err := r.recorder.Close(); err != nil {
		t.Error(err)
	}
	r.judge(t)
	r.file.Close()
	if t.Failed() || os.Getenv("IDNODE_E2E_KEEP") != "" {
		r.keep(t)
		return
	}
	os.RemoveAll(r.dir)
}

func (r *Run) judge(t testing.TB) {
	if _, err := r.file.Seek(0, io.SeekStart); err != nil {
		t.Error(err)
		return
	}
	report, err := check.Stream(history.Read(r.file), r.options)
	if err != nil {
		t.Error(err)
		return
	}
	var text strings.Builder
	report.Write(&text, nil)
	now := time.Now()
	t.Logf("seed %d, %s, for %s of which the machine stood still:\n%s", r.Seed, now.Sub(r.begun).Round(time.Second),
		r.Stalls.Between(r.begun, now).Round(time.Millisecond), text.String())
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if err := report.Searched.Visualize(r.dir); err != nil {
		t.Error(err)
	}
	if r.onReport != nil {
		r.onReport(report)
	}
}

// keep copies the nodes' logs to the history and says how to see this again.
func (r *Run) keep(t testing.TB) {
	for _, n := range r.cluster.Nodes {
		name := filepath.Base(n.DataDir) + "-" + n.Tag + ".log"
		if err := copyFile(filepath.Join(r.dir, name), n.DataDir+".log", 0o600); err != nil && !os.IsNotExist(err) {
			t.Log(err)
		}
	}
	folder, err := os.Getwd()
	if err == nil {
		folder, err = filepath.Rel(repository(t), folder)
	}
	if err != nil {
		folder = "."
	}
	t.Logf("history and logs are in %s; again:\n%s", r.dir,
		fmt.Sprintf("IDNODE_E2E_SEED=%d go test -count=1 -run '^%s$' ./%s", r.Seed, t.Name(), folder))
}

// member records what a node says of itself: which id its tag belongs to, and
// the hash of its state.
func (r *Run) member(s *idnodev1.GetStatusResponse) {
	if r == nil {
		return
	}
	r.recorder.Event(history.Op{Kind: history.Member, Tag: s.Self.Tag, ID: s.Self.Id})
	r.recorder.Event(history.Op{
		Kind: history.Hash, Node: s.Self.Tag, ID: s.ClusterId, Index: s.AppliedIndex, Hash: s.StateHash,
	})
}

func copyFile(to, from string, mode os.FileMode) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, mode)
}
