package metrics

import (
	"math"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/docid"
)

// TestRecent: rates and quantiles are those of the last seconds alone.
func TestRecent(t *testing.T) {
	m := New("")
	now := time.Unix(1_800_000_000, 0)
	tell := func(ids int64, took time.Duration) {
		m.Service().Issued("shop", docid.Identity, ids)
		m.Service().Issued("shop", docid.GUID, ids)
		for range 100 {
			m.Cluster().Groups.Answered(1, 1, 1, took)
			m.Cluster().Wrote(took / 2)
		}
	}
	tell(1000, 3*time.Second) // Before anybody looked.
	steps := []struct {
		name string
		pass time.Duration
		ids  int64
		took time.Duration
		want cluster.Stats
	}{
		{name: "the first look", want: cluster.Stats{}},
		{
			name: "after a second", pass: time.Second, ids: 50, took: time.Millisecond,
			// Within the buckets from 0.8 to 1.6 ms, and from 0.4 to 0.8 ms.
			want: cluster.Stats{IdentitiesPerSecond: 50, IDsPerSecond: 100, CommitP99: 1592 * time.Microsecond, WriteP99: 796 * time.Microsecond},
		},
		{
			name: "too soon", pass: time.Millisecond, ids: 5000, took: time.Second,
			want: cluster.Stats{IdentitiesPerSecond: 50, IDsPerSecond: 100, CommitP99: 1592 * time.Microsecond, WriteP99: 796 * time.Microsecond},
		},
		{
			name: "quiet since", pass: recentWindow, want: cluster.Stats{
				IdentitiesPerSecond: 499, IDsPerSecond: 999, CommitP99: 1630208 * time.Microsecond, WriteP99: 815104 * time.Microsecond,
			},
		},
		{name: "quiet for long", pass: recentWindow, want: cluster.Stats{}},
		{
			name: "slower than any bucket", pass: recentWindow, ids: 1, took: time.Minute,
			want: cluster.Stats{IdentitiesPerSecond: .1, IDsPerSecond: .2, CommitP99: 3276800 * time.Microsecond, WriteP99: 3276800 * time.Microsecond},
		},
	}
	for _, step := range steps {
		now = now.Add(step.pass)
		if step.ids > 0 {
			tell(step.ids, step.took)
		}
		got := m.recentAt(now)
		if got.IDsPerSecond >= 1 {
			got.IdentitiesPerSecond, got.IDsPerSecond = math.Floor(got.IdentitiesPerSecond), math.Floor(got.IDsPerSecond)
		}
		got.CommitP99, got.WriteP99 = got.CommitP99.Round(time.Microsecond), got.WriteP99.Round(time.Microsecond)
		if got != step.want {
			t.Errorf("%s: %+v, want %+v", step.name, got, step.want)
		}
	}
	for range 100 {
		now = now.Add(recentEvery)
		m.recentAt(now)
	}
	if n, most := len(m.recent.samples), int(recentWindow/recentEvery)+2; n > most {
		t.Errorf("%d samples are kept, want %d at most", n, most)
	}
}
