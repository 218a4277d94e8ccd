package generator

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/idnode/idnode/client/snowflake"
)

// failsOnce is a source whose second acquisition fails. Each of its windows is a second long.
type failsOnce struct{ acquired int }

func (f *failsOnce) Acquire(_ context.Context, now time.Time) (Lease, error) {
	if f.acquired++; f.acquired == 2 {
		return Lease{}, errors.New("no quorum")
	}
	layout := snowflake.Layouts["twitter"]
	from := layout.At(now.UnixMilli())
	return Lease{Layout: layout, From: from, Until: from + 1000}, nil
}

func (f *failsOnce) Renew(context.Context, Lease, time.Time) (int64, error) {
	return 0, errors.New("no")
}
func (f *failsOnce) Release(context.Context, Lease, int64) error { return nil }

// TestAClockThatIsSetBackWhileAWindowPasses: the next call asks for a lease again, and does not wait for
// the window that has passed.
func TestAClockThatIsSetBackWhileAWindowPasses(t *testing.T) {
	source := &failsOnce{}
	g := New(source, time.Second)
	defer func() { _ = g.Close(context.Background()) }()
	now := time.Now()
	g.wall = func() time.Time { return now }
	g.setClock()
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.clock.Store(&reading{now.Add(2 * time.Second), time.Now()})
	now = now.Add(-time.Hour)
	if _, err := g.Next(t.Context()); err == nil {
		t.Fatal("there was no lease")
	}
	if _, err := g.Next(t.Context()); err != nil || source.acquired != 3 {
		t.Errorf("%v after %d acquisitions", err, source.acquired)
	}
}
