package metrics

import (
	"math"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/docid"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
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
		want *peerv1.Figures
	}{
		{name: "the first look", want: &peerv1.Figures{}},
		{
			name: "after a second", pass: time.Second, ids: 50, took: time.Millisecond,
			// Within the buckets from 0.8 to 1.6 ms, and from 0.4 to 0.8 ms.
			want: &peerv1.Figures{IdentitiesPerSecond: 50, IdsPerSecond: 100, CommitP99Micros: 1592, WriteP99Micros: 796},
		},
		{
			name: "too soon", pass: time.Millisecond, ids: 5000, took: time.Second,
			want: &peerv1.Figures{IdentitiesPerSecond: 50, IdsPerSecond: 100, CommitP99Micros: 1592, WriteP99Micros: 796},
		},
		{
			name: "quiet since", pass: recentWindow, want: &peerv1.Figures{
				IdentitiesPerSecond: 499, IdsPerSecond: 999, CommitP99Micros: 1630208, WriteP99Micros: 815104,
			},
		},
		{name: "quiet for long", pass: recentWindow, want: &peerv1.Figures{}},
		{
			name: "slower than any bucket", pass: recentWindow, ids: 1, took: time.Minute,
			want: &peerv1.Figures{IdentitiesPerSecond: .1, IdsPerSecond: .2, CommitP99Micros: 3276800, WriteP99Micros: 3276800},
		},
	}
	for _, step := range steps {
		now = now.Add(step.pass)
		if step.ids > 0 {
			tell(step.ids, step.took)
		}
		got := proto.CloneOf(m.recentAt(now))
		if got.IdsPerSecond >= 1 {
			got.IdentitiesPerSecond, got.IdsPerSecond = math.Floor(got.IdentitiesPerSecond), math.Floor(got.IdsPerSecond)
		}
		if !proto.Equal(got, step.want) {
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
