package fsm

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// TestTwoBackupsInAnyOrder: of two backups of a series, restored by the operations that a
// restore sends, in any order and again, comes the series of the newer one. None of its
// numbers can go to another key before somebody has said what the books have.
func TestTwoBackupsInAnyOrder(t *testing.T) {
	for seed := range uint64(150) {
		r := newSeriesRun(t, seed)
		backup := func() [][]byte {
			for range r.IntN(40) {
				r.step()
			}
			return r.cut(importOf(t, r.state))
		}
		older, newer := backup(), backup()
		want := r.restore(newer)
		for c := range want.Freeze().Pieces {
			for _, n := range c.GetNumbers() {
				if state := series.NumberState(n.GetState()); state == series.Open || state == series.Released {
					t.Fatalf("seed %d: restored with %+v", seed, n)
				}
			}
		}
		for name, backups := range map[string][][]byte{
			"the older one first": slices.Concat(older, newer), "the newer one first": slices.Concat(newer, older),
			"each twice": slices.Concat(older, newer, newer, older),
		} {
			if got := r.restore(backups); got.Hash() != want.Hash() {
				t.Errorf("seed %d, %s:\n%s\nthe newer one:\n%s", seed, name, shown(got), shown(want))
			}
		}
	}
}

// restore returns the series that some imports leave in a new cluster.
func (r *seriesRun) restore(imports [][]byte) *series.Series {
	r.t.Helper()
	to := newFormedLog(r.t)
	to.now = r.now.Add(time.Hour)
	for _, o := range imports {
		to.mustApplied(to.raw(o))
	}
	restored := (&seriesRun{testLog: to}).series()
	if err := verified(restored); err != nil {
		r.t.Fatal(err)
	}
	return restored
}

// cut cuts imports into smaller ones, as a restore does with large ones.
func (r *seriesRun) cut(imports [][]byte) (all [][]byte) {
	for _, data := range imports {
		o := &raftlogv1.Operation{}
		if err := proto.Unmarshal(data, o); err != nil {
			r.t.Fatal(err)
		}
		whole := o.GetSeriesImport().GetNumbers()
		for len(whole.GetNumbers()) > 1 {
			part, n := proto.CloneOf(whole), 1+r.IntN(len(whole.GetNumbers())-1)
			part.Numbers = part.GetNumbers()[:n]
			all = append(all, onSeries(&raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: part}}))
			whole.Numbers, whole.First = whole.GetNumbers()[n:], whole.GetFirst()+int64(n)
		}
		all = append(all, encodeOperation(o))
	}
	return all
}

func shown(s *series.Series) string {
	f := s.Freeze()
	m, _ := f.Record()
	text := fmt.Sprintf("%+v\n", m)
	for p := range f.Pieces {
		text += fmt.Sprintf("%+v\n", p)
	}
	return text
}
