package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func all(Name) bool { return true }

// count counts calls of names as often as each says.
func (b *Busiest) count(calls map[string]int) {
	for name, times := range calls {
		for range times {
			b.Count("identity", "default", name, 1)
		}
	}
}

// TestTop: the busiest first, by their ids a second in this window and the one before.
func TestTop(t *testing.T) {
	var b Busiest
	b.count(map[string]int{"a": 60, "b": 120})
	b.Count("hilo", "shop", "c", 600)
	b.Turn(Window)
	b.count(map[string]int{"a": 180})
	b.Turn(Window + time.Second) // It is not over.
	want := []Rate{{Name{"hilo", "shop", "c"}, 5}, {Name{"identity", "default", "a"}, 2}}
	if d := cmp.Diff(want, b.Top(2*Window, 2, all)); d != "" {
		t.Error(d)
	}
	onlyB := b.Top(2*Window, 2, func(n Name) bool { return n.Name == "b" })
	if d := cmp.Diff([]Rate{{Name{"identity", "default", "b"}, 1}}, onlyB); d != "" {
		t.Error(d)
	}
	b.Turn(2 * Window)
	b.Turn(3 * Window)
	if got := b.Top(3*Window, 2, all); len(got) != 0 {
		t.Errorf("names of earlier windows: %v", got)
	}
}

// TestBusyNamesAmongMany: names that each have few ids displace no busy one, and none seems
// busier than it is. Memory stays bounded.
func TestBusyNamesAmongMany(t *testing.T) {
	var b Busiest
	for i := range 20_000 {
		b.Count("identity", "default", fmt.Sprint("rare-", i), 1)
		if i%4 == 0 {
			b.Count("identity", "default", "busy", 10)
		}
	}
	if len(b.present) > maxNames {
		t.Errorf("%d names", len(b.present))
	}
	top := b.Top(Window, 10, all)
	if len(top) == 0 || top[0].Name.Name != "busy" || top[0].PerSecond < 600 || top[0].PerSecond > 1100 {
		t.Errorf("got %v", top)
	}
	if len(top) > 1 {
		t.Errorf("%v, but each had one id", top[1:])
	}
}

// TestSampling: of many calls a part is counted, for all of them; and again all when they are
// few.
func TestSampling(t *testing.T) {
	var b Busiest
	b.count(map[string]int{"busy": 1_000_000})
	if b.counted > 30_000 {
		t.Errorf("%d calls took the lock", b.counted)
	}
	// A sample of some thousand: ten standard deviations are below a third.
	if got := b.Top(time.Second, 1, all)[0].PerSecond; got < 700_000 || got > 1_300_000 {
		t.Errorf("%.0f of a million", got)
	}
	for turn := range 20 {
		b.Turn(time.Duration(turn+1) * Window)
	}
	if shift := b.shift.Load(); shift != 0 {
		t.Errorf("quiet, and of 2^%d calls one is counted", shift)
	}
}

// BenchmarkCount is what counting adds to a call.
func BenchmarkCount(b *testing.B) {
	names := [100]string{}
	for i := range names {
		names[i] = fmt.Sprint("invoices-", i)
	}
	var busy Busiest
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			busy.Count("identity", "default", names[i%len(names)], 1)
		}
	})
}
