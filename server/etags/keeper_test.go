package etags

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/test/fsmtest"
	"github.com/idnode/idnode/test/logbuffer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// disk is an etag.Store whose content outlives it, and can be set back.
type disk struct {
	mu    sync.Mutex
	state etag.Stored
	// closing, if set, is called when the counters close it.
	closing func()
}

func (d *disk) Load() (etag.Stored, error) { return d.copy(), nil }

func (d *disk) copy() etag.Stored {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.state
	s.Databases = maps.Clone(s.Databases)
	return s
}

func (d *disk) setBack(to etag.Stored) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = to
}

func (d *disk) Reserve(r etag.Reservation) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Clean = false
	d.state.Start = max(d.state.Start, r.Start)
	if d.state.Databases == nil {
		d.state.Databases = map[string]uint64{}
	}
	maps.Copy(d.state.Databases, r.Limits)
	return nil
}

func (d *disk) Stop(last map[string]uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.Clean, d.state.Databases = true, maps.Clone(last)
	return nil
}

func (d *disk) Close() error {
	if d.closing != nil {
		d.closing()
	}
	return nil
}

// run is one run of a node's etags, from start to stop.
type run struct {
	t        *testing.T
	keeper   *Keeper
	counters *etag.Counters
	log      *logbuffer.Buffer
}

// start opens the counters on d. With announced the cluster answers at once.
func start(t *testing.T, w *world, d *disk, announced bool, change func(*Config)) *run {
	t.Helper()
	counters, err := etag.Open(d, etag.Config{
		BlockSize: 100, MaxDatabases: w.maxDatabases, Logger: slog.New(slog.DiscardHandler),
		MaxWait: time.Minute, CloseWait: 2 * time.Minute, // A busy machine is no disk that does not answer.
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, counters: counters, log: &logbuffer.Buffer{}}
	cfg := Config{
		Counters: counters, Proposer: w, NodeID: nodeA, StartWait: time.Minute, ClusterCheck: func() error { return nil },
		Logger: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	r.keeper = NewKeeper(cfg)
	t.Cleanup(func() { _ = r.keeper.Stop(context.Background()) })
	if announced {
		r.keeper.Announced(w.announce())
		await(t, r.keeper.Ready)
	}
	return r
}

// next takes one etag of the default database.
func (r *run) next() uint64 {
	r.t.Helper()
	n, err := r.keeper.NextBlock("default", 1)
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// take takes n etags and returns the last.
func (r *run) take(n int) uint64 {
	r.t.Helper()
	first, err := r.keeper.NextBlock("default", n)
	if err != nil {
		r.t.Fatal(err)
	}
	return first + uint64(n) - 1
}

func (r *run) stop() {
	r.t.Helper()
	if err := r.keeper.Stop(context.Background()); err != nil {
		r.t.Fatal(err)
	}
}

// crash ends the run without a word to anyone: the disk stays as it is.
func (r *run) crash(d *disk) {
	r.t.Helper()
	before := d.copy()
	r.keeper.phase.Store(stopped)
	r.keeper.cancel()
	<-r.keeper.done
	_ = r.counters.Close()
	d.setBack(before)
	r.keeper.stopOnce.Do(func() {})
}

// ceiling returns what the cluster keeps for the default database.
func ceiling(w *world) uint64 {
	for _, d := range w.State.Etags(nodeA).GetCeilings() {
		if d.GetDatabase() == "default" {
			return d.GetCeiling()
		}
	}
	return 0
}

func TestCleanStopGoesOnExactly(t *testing.T) {
	w, d := newWorld(t), &disk{}
	r := start(t, w, d, true, nil)
	if got := r.next(); got != 1 {
		t.Fatalf("first etag %d", got)
	}
	r.take(249)
	await(t, func() bool { return ceiling(w) > 250 })
	r.stop()
	if _, err := r.keeper.NextBlock("default", 1); err == nil {
		t.Error("an etag after the stop")
	}
	r = start(t, w, d, true, nil)
	if got := r.next(); got != 251 {
		t.Errorf("etag %d after a clean stop at 250", got)
	}
	if strings.Contains(r.log.String(), "older copy") {
		t.Errorf("a warning without a cause: %s", r.log)
	}
}

func TestCrashGoesOnAboveTheCeiling(t *testing.T) {
	w, d := newWorld(t), &disk{}
	r := start(t, w, d, true, nil)
	last := r.take(10)
	await(t, func() bool { return ceiling(w) > last })
	r.crash(d)
	above := ceiling(w)
	r = start(t, w, d, true, nil)
	if got := r.next(); got != above+1 {
		t.Errorf("etag %d, want the next above the ceiling %d", got, above)
	}
}

// TestDiskSetBack: whatever older copy of the disk a node starts from, no etag
// comes twice, and the node says so.
func TestDiskSetBack(t *testing.T) {
	copies := []struct {
		name string
		at   func(r *run, d *disk) etag.Stored
	}{
		{"to a clean stop", func(r *run, d *disk) etag.Stored { r.take(5); r.stop(); return d.copy() }},
		{"to a running node", func(r *run, d *disk) etag.Stored { r.take(5); s := d.copy(); r.stop(); return s }},
	}
	for _, c := range copies {
		t.Run(c.name, func(t *testing.T) {
			w, d := newWorld(t), &disk{}
			old := c.at(start(t, w, d, true, nil), d)
			r := start(t, w, d, true, nil)
			last := r.take(5000)
			await(t, func() bool { return ceiling(w) > last })
			r.stop()

			d.setBack(old)
			r = start(t, w, d, true, nil)
			if got := r.next(); got <= last {
				t.Errorf("etag %d again: %d was given", got, last)
			}
			if !strings.Contains(r.log.String(), "older copy") {
				t.Errorf("no warning: %s", r.log)
			}
		})
	}
}

// TestNoEtagsAtTheWrongPlace: a node that may be in the place of another cluster's node gives
// callers no etags, even if the cluster has answered.
func TestNoEtagsAtTheWrongPlace(t *testing.T) {
	w, d := newWorld(t), &disk{}
	var check error = errors.New("who is there")
	r := start(t, w, d, true, func(c *Config) { c.ClusterCheck = func() error { return check } })
	_, err := r.keeper.NextBlock("default", 1)
	wantStarting(t, err)
	check = nil
	r.next()
}

// TestStartWaits: no etag before the cluster has answered.
func TestStartWaits(t *testing.T) {
	w, d := newWorld(t), &disk{}
	r := start(t, w, d, false, nil)
	_, err := r.keeper.NextBlock("default", 1)
	wantStarting(t, err)
	r.keeper.Announced(w.announce())
	await(t, r.keeper.Ready)
	r.next()
}

// TestStartWithoutCluster: a node that no cluster answers goes on from its disk,
// and an answer that comes late still counts.
func TestStartWithoutCluster(t *testing.T) {
	w, d := newWorld(t), &disk{}
	r := start(t, w, d, true, nil)
	r.take(5)
	r.stop()
	old := d.copy()
	r = start(t, w, d, true, nil)
	last := r.take(5000)
	await(t, func() bool { return ceiling(w) > last })
	r.stop()
	hurry := func(c *Config) { c.StartWait = time.Millisecond }

	t.Run("clean", func(t *testing.T) {
		r := start(t, w, d, false, hurry)
		await(t, r.keeper.Ready)
		if got := r.next(); got != last+1 {
			t.Errorf("etag %d, want %d from the disk", got, last+1)
		}
		r.keeper.Announced(w.announce())
		await(t, func() bool { return strings.Contains(r.log.String(), "exactly=true") })
		if got := r.next(); got != last+2 {
			t.Errorf("etag %d, want %d: disk and cluster agree", got, last+2)
		}
		last += 2
		r.stop()
	})
	t.Run("set back", func(t *testing.T) {
		d.setBack(old)
		r := start(t, w, d, false, hurry)
		await(t, r.keeper.Ready)
		r.next()
		r.keeper.Announced(w.announce())
		await(t, func() bool { return strings.Contains(r.log.String(), "exactly=false") })
		if got := r.next(); got <= last {
			t.Errorf("etag %d again: %d was given", got, last)
		}
	})
}

// TestAnnouncedAgain: a later announcement makes no jump, and the clean stop names its start
// number.
func TestAnnouncedAgain(t *testing.T) {
	w, d := newWorld(t), &disk{}
	r := start(t, w, d, true, nil)
	first := r.take(7)
	for range 3 {
		r.keeper.Announced(w.announce())
	}
	await(t, func() bool { return d.copy().Start == 4 })
	if got := r.next(); got != first+1 {
		t.Errorf("etag %d after another announcement, want %d", got, first+1)
	}
	r.stop()
	r = start(t, w, d, true, nil)
	if got := r.next(); got != first+2 {
		t.Errorf("etag %d, want %d: the clean stop did not count", got, first+2)
	}
}

// TestCeilingsRise: ahead of every database, and again after a failure.
func TestCeilingsRise(t *testing.T) {
	w, d := newWorld(t), &disk{}
	w.Set(func(f *fsmtest.Faults) { f.Fail = nil })
	r := start(t, w, d, true, nil)
	w.Set(func(f *fsmtest.Faults) { f.Fail = outcome.NewNotApplied(outcome.NoQuorum, nil) })
	for i := range 300 {
		if _, err := r.keeper.NextBlock("db"+string(rune('a'+i%26))+string(rune('a'+i/26)), 1+i); err != nil {
			t.Fatal(err)
		}
	}
	await(t, func() bool { return strings.Contains(r.log.String(), "could not be raised") })
	w.Set(func(f *fsmtest.Faults) { f.Fail = nil })
	ahead := func() bool {
		ceilings := map[string]uint64{}
		for _, c := range w.State.Etags(nodeA).GetCeilings() {
			ceilings[c.GetDatabase()] = c.GetCeiling()
		}
		for database, reserved := range r.counters.Reserved() {
			if ceilings[database] < reserved {
				return false
			}
		}
		return len(ceilings) == 300
	}
	await(t, ahead)
	before := w.Proposals()
	if _, err := r.keeper.NextBlock("dbaa", etag.MaxBlock); err != nil {
		t.Fatal(err)
	}
	await(t, ahead)
	if got := w.Proposals() - before; got > 2 {
		t.Errorf("%d proposals for one new ceiling", got)
	}
}

// TestStopWithoutCluster: the disk has the exact values; the error says that the
// next start leaves a gap, and it does.
func TestStopWithoutCluster(t *testing.T) {
	w, d := newWorld(t), &disk{}
	r := start(t, w, d, true, nil)
	last := r.take(5)
	await(t, func() bool { return ceiling(w) > last })
	w.Set(func(f *fsmtest.Faults) { f.Fail = outcome.NewNotApplied(outcome.NoQuorum, nil) })
	if err := r.keeper.Stop(context.Background()); err == nil || errors.Is(err, etag.ErrBroken) {
		t.Errorf("stop: %v", err)
	}
	if s := d.copy(); !s.Clean || s.Databases["default"] != last {
		t.Errorf("disk %+v", s)
	}
	w.Set(func(f *fsmtest.Faults) { f.Fail = nil })
	above := ceiling(w)
	r = start(t, w, d, true, nil)
	if got := r.next(); got != above+1 {
		t.Errorf("etag %d, want %d", got, above+1)
	}
}

// TestStopIsBounded: a cluster that does not answer, or never has, does not delay a stop.
func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := newWorld(t), &disk{}
		r := start(t, w, d, true, nil)
		w.Set(func(f *fsmtest.Faults) { f.Gate = make(chan struct{}) })
		r.take(5)
		began := time.Now()
		if err := r.keeper.Stop(context.Background()); err == nil {
			t.Error("a clean stop that the cluster never recorded")
		}
		if took := time.Since(began); took > 2*stopTimeout {
			t.Errorf("the stop took %s", took)
		}
		r = start(t, w, &disk{}, false, nil)
		if err := r.keeper.Stop(context.Background()); err == nil {
			t.Error("a clean stop before the first announcement")
		}
		r.keeper.Announced(&raftlogv1.EtagRecord{})
	})
}
