package etags

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/test/fsmtest"
	"github.com/idnode/idnode/test/tier"
)

// tenant names one of many databases.
func tenant(i int) string { return fmt.Sprintf("tenant-%05d", i) }

// TestNoEtagComesTwiceWithTooManyDatabases: a node with more databases than the
// cluster keeps ceilings for gives etags in those that have one, and none twice
// after its disk was set back.
func TestNoEtagComesTwiceWithTooManyDatabases(t *testing.T) {
	const limit, used = 2, 5
	w, d := newWorld(t), &disk{}
	w.setMaxDatabases(limit)
	given := map[string]bool{}
	take := func(r *run, n int) (databases int) {
		for i := range used {
			first, err := r.keeper.NextBlock(tenant(i), n)
			if errors.Is(err, etag.ErrTooManyDatabases) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			databases++
			for value := first; value < first+uint64(n); value++ {
				if key := fmt.Sprint(tenant(i), " ", value); given[key] {
					t.Fatalf("%s was given twice", key)
				} else {
					given[key] = true
				}
			}
		}
		return databases
	}
	old := d.copy()
	r := start(t, w, d, true, nil)
	if got := take(r, 300); got != limit {
		t.Errorf("etags in %d databases, want %d", got, limit)
	}
	await(t, func() bool { return w.ceilings() == limit })
	r.crash(d)
	d.setBack(old)
	take(start(t, w, d, true, nil), 300)
}

// TestCountersBeyondTheLimitStop: counters that are on disk already, but for which
// the cluster keeps no ceiling, stop until it has room for them; the others go on.
func TestCountersBeyondTheLimitStop(t *testing.T) {
	w, d := newWorld(t), &disk{}
	r := start(t, w, d, true, nil)
	w.Set(func(f *fsmtest.Faults) { f.Fail = outcome.NewNotApplied(outcome.NoQuorum, nil) })
	for i := range 700 {
		if _, err := r.keeper.NextBlock(tenant(i), 1); err != nil {
			t.Fatal(err)
		}
	}
	r.crash(d)
	w.Set(func(f *fsmtest.Faults) { f.Fail = nil })
	w.setMaxDatabases(500)

	r = start(t, w, d, true, nil)
	await(t, func() bool { return r.keeper.isBeyond(tenant(500)) && w.ceilings() == 500 })
	for i := range 700 {
		if _, err := r.keeper.NextBlock(tenant(i), 1); errors.Is(err, etag.ErrTooManyDatabases) != (i >= 500) {
			t.Errorf("%s: %v", tenant(i), err)
		}
	}
	w.setMaxDatabases(600)
	if _, err := r.keeper.NextBlock(tenant(0), 1000); err != nil { // The keeper looks again at the next reservation.
		t.Fatal(err)
	}
	await(t, func() bool { return !r.keeper.isBeyond(tenant(599)) && w.ceilings() == 600 })
	if _, err := r.keeper.NextBlock(tenant(650), 1); !errors.Is(err, etag.ErrTooManyDatabases) {
		t.Errorf("beyond the new limit: %v", err)
	}
}

// sized is a Proposer that refuses what does not fit into a group of calls.
type sized struct{ *world }

func (p sized) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	if len(operation) > 60<<10 {
		return nil, outcome.NewNotApplied(outcome.TooLarge, nil)
	}
	return p.world.Propose(ctx, operation)
}

// takeEach takes n etags of each of many databases, the first of which must be the
// one given. Many callers at a time share writes to the disk, and ceilings.
func (r *run) takeEach(databases, n int, want uint64) {
	r.t.Helper()
	const callers = 100
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			for i := caller; i < databases; i += callers {
				if first, err := r.keeper.NextBlock(tenant(i), n); err != nil || first != want {
					r.t.Errorf("%s goes on at %d (%v), want %d", tenant(i), first, err, want)
				}
			}
		})
	}
	all.Wait()
}

// TestTenThousandDatabasesRestartExactly: a clean stop comes in as many parts as it
// takes, and each counter goes on at its next number.
func TestTenThousandDatabasesRestartExactly(t *testing.T) {
	tier.Long(t)
	const many = 10_000
	w, d := newWorld(t), &disk{}
	bySize := func(c *Config) { c.Proposer = sized{w} }
	r := start(t, w, d, true, bySize)
	r.takeEach(many, 3, 1)
	begin, before := time.Now(), w.Proposals()
	r.stop()
	t.Logf("stopped in %s and %d proposals", time.Since(begin), w.Proposals()-before)
	begin = time.Now()
	r = start(t, w, d, true, bySize)
	t.Logf("started in %s", time.Since(begin))
	r.takeEach(many, 1, 4)
}

// TestAStopOfWhichAPartIsLostIsNoCleanStop: the next start goes on above the
// ceilings.
func TestAStopOfWhichAPartIsLostIsNoCleanStop(t *testing.T) {
	w, d := newWorld(t), &disk{}
	r := start(t, w, d, true, nil)
	r.takeEach(3000, 3, 1)
	await(t, func() bool { return w.ceilings() == 3000 })
	r.keeper.cfg.Proposer = &failing{world: w, after: 1}
	if err := r.keeper.Stop(t.Context()); err == nil {
		t.Error("a stop of which a part was lost")
	}
	r = start(t, w, d, true, nil)
	for _, i := range []int{0, 2999} {
		if got, err := r.keeper.NextBlock(tenant(i), 1); err != nil || got <= etag.CeilingStep {
			t.Errorf("%s goes on at %d (%v)", tenant(i), got, err)
		}
	}
}

// failing is a Proposer that lets so many proposals through.
type failing struct {
	*world
	after int
}

func (p *failing) Propose(ctx context.Context, operation []byte) ([]byte, error) {
	if p.after--; p.after < 0 {
		return nil, outcome.NewNotApplied(outcome.NoQuorum, nil)
	}
	return p.world.Propose(ctx, operation)
}
