package service

import (
	"errors"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/test/fsmtest"
)

// lagging is the state of a node that knows an old series until it has asked the cluster.
type lagging struct {
	State
	old *fsm.State
}

// ReadSeries implements State.
func (s *lagging) ReadSeries(db, name string, read func(fsm.NamedSeries, *series.Series)) bool {
	if s.old != nil {
		return s.old.ReadSeries(db, name, read)
	}
	return s.State.ReadSeries(db, name, read)
}

// ticketed is the definition that a lagging node knows.
var ticketed = &idnodev1.DefineSeriesRequest{
	Name:       "tickets",
	Definition: definitionMessage(series.Definition{Format: "{till}-{desk}-{day}-{number}"}),
}

func ticket(key string) *idnodev1.TakeNumbersRequest {
	return &idnodev1.TakeNumbersRequest{Series: "tickets", Keys: []string{key}, Values: map[string]string{"till": "T", "desk": "D"}}
}

// newLagging returns a node that has not applied a change, and how often it asked the cluster.
// Asking helps if it catches up.
func newLagging(t *testing.T, change func(now node) error, catchesUp bool) (behind node, asked *int) {
	t.Helper()
	was, now := newNode(t, newWorld(t), nil), newNode(t, newWorld(t), nil)
	_, before := was.DefineSeries(t.Context(), ticketed)
	_, first := now.DefineSeries(t.Context(), ticketed)
	now.world.Advance(time.Second)
	if err := errors.Join(before, first, change(now)); err != nil {
		t.Fatal(err)
	}
	state := &lagging{State: now.world.State, old: was.world.State}
	asked = new(int)
	now.world.Set(func(f *fsmtest.Faults) {
		f.CatchUp = func() {
			if *asked++; catchesUp {
				state.old = nil
			}
		}
	})
	return newNode(t, now.world, func(c *Config) { c.State = state }), asked
}

// redefine returns a change into another definition.
func redefine(t *testing.T, d series.Definition) func(node) error {
	return func(n node) error {
		_, err := n.DefineSeries(t.Context(),
			&idnodev1.DefineSeriesRequest{Name: "tickets", Definition: definitionMessage(d), ExpectedVersion: 1})
		return err
	}
}

// TestATakeOnANodeBehindADefinition has scope and date by the present one. The node asks the
// cluster when it is refused, and not before.
func TestATakeOnANodeBehindADefinition(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(node) error
		text   string
		asked  int
	}{
		"none":                        {func(node) error { return nil }, "T-D-14-1", 0},
		"another order of the values": {redefine(t, series.Definition{Format: "{desk}-{till}-{day}-{number}"}), "D-T-14-1", 1},
		"another zone": {redefine(t,
			series.Definition{Format: "{till}-{desk}-{day}-{number}", TimeZone: "Pacific/Auckland"}), "T-D-15-1", 1},
		"a series of that name": {func(n node) error {
			_, deleted := n.DeleteSeries(t.Context(), &idnodev1.DeleteSeriesRequest{Name: "tickets", ExpectedVersion: 1})
			_, defined := n.DefineSeries(t.Context(),
				&idnodev1.DefineSeriesRequest{
					Name:       "tickets",
					Definition: definitionMessage(series.Definition{Format: "{desk}/{till}-{day}-{number}"}),
				})
			return errors.Join(deleted, defined)
		}, "D/T-14-1", 1},
	} {
		t.Run(name, func(t *testing.T) {
			n, asked := newLagging(t, tt.change, true)
			before := n.world.Proposals()
			for i, key := range []string{"a", "a"} {
				res, err := n.TakeNumbers(t.Context(), ticket(key))
				if err != nil || res.Numbers[0].Text != tt.text || *asked != tt.asked || n.world.Proposals() != before+1+i+tt.asked {
					t.Fatalf("%+v, %v; asked the cluster %d times, proposed %d", res, err, *asked, n.world.Proposals()-before)
				}
			}
		})
	}
}

// TestATakeOnANodeThatStaysBehind changes nothing, and its caller is told to make it again.
func TestATakeOnANodeThatStaysBehind(t *testing.T) {
	n, asked := newLagging(t, redefine(t, series.Definition{Format: "{desk}-{till}-{number}"}), false)
	_, err := n.TakeNumbers(t.Context(), ticket("a"))
	wantError(t, err, apierror.CodeAborted, apierror.ReasonConcurrency, "series")
	if *asked != 1 {
		t.Errorf("the node asked %d times", *asked)
	}
	n.world.Set(func(f *fsmtest.Faults) { f.Unreadable = outcome.NewNotApplied(outcome.Unspecified, errors.New("none")) })
	_, err = n.TakeNumbers(t.Context(), ticket("a"))
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonNoQuorum, "")
	n.world.State.ReadSeries("default", "tickets", func(s fsm.NamedSeries, _ *series.Series) {
		if s.Keys != 0 {
			t.Errorf("the series has %d keys", s.Keys)
		}
	})
}
