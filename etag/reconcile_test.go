package etag_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/idnode/idnode/etag"
)

const step = etag.CeilingStep

type known = map[string]etag.ClusterDatabase

func TestReconcile(t *testing.T) {
	clean := func(values map[string]uint64) etag.Stored { return etag.Stored{Clean: true, Databases: values} }
	for name, tc := range map[string]struct {
		disk    etag.Stored
		cluster *etag.ClusterView
		want    etag.Decision
	}{
		"no cluster answered": {
			disk: etag.Stored{Databases: map[string]uint64{"a": 5}},
		},
		"first start": {
			cluster: &etag.ClusterView{Start: 1},
		},
		"both clean and equal": {
			disk:    clean(map[string]uint64{"a": 5, "b": 7}),
			cluster: &etag.ClusterView{Clean: true, Databases: known{"a": {Ceiling: step, Last: 5}, "b": {Ceiling: step, Last: 7}}},
			want:    etag.Decision{Exact: true},
		},
		"equal, with a database that was never used": {
			disk:    clean(map[string]uint64{"a": 5, "b": 0}),
			cluster: &etag.ClusterView{Clean: true, Databases: known{"a": {Ceiling: step, Last: 5}, "c": {Ceiling: step}}},
			want:    etag.Decision{Exact: true},
		},
		"the cluster did not record the stop": {
			disk:    clean(map[string]uint64{"a": 5}),
			cluster: &etag.ClusterView{Databases: known{"a": {Ceiling: step, Last: 5}}},
			want:    etag.Decision{Raises: []etag.Raise{{"a", step}}},
		},
		"the disk did not record the stop": {
			disk:    etag.Stored{Databases: map[string]uint64{"a": 65_536}},
			cluster: &etag.ClusterView{Clean: true, Databases: known{"a": {Ceiling: step, Last: 5}}},
			want:    etag.Decision{Raises: []etag.Raise{{"a", step}}},
		},
		"a database differs, so all begin above": {
			disk:    clean(map[string]uint64{"a": 5, "b": 7}),
			cluster: &etag.ClusterView{Clean: true, Databases: known{"a": {Ceiling: step, Last: 5}, "b": {Ceiling: step, Last: 9}}},
			want: etag.Decision{
				Raises: []etag.Raise{{"a", step}, {"b", step}},
				Behind: []etag.Behind{{Database: "b", Disk: 7, Known: 9}},
			},
		},
		"the disk knows one more database": {
			disk:    clean(map[string]uint64{"a": 5, "b": 7}),
			cluster: &etag.ClusterView{Clean: true, Databases: known{"a": {Ceiling: step, Last: 5}}},
			want:    etag.Decision{Raises: []etag.Raise{{"a", step}}},
		},
		"the disk lost a database": {
			disk:    clean(nil),
			cluster: &etag.ClusterView{Clean: true, Databases: known{"a": {Ceiling: step, Last: 5}}},
			want: etag.Decision{
				Raises: []etag.Raise{{"a", step}},
				Behind: []etag.Behind{{Database: "a", Known: 5}},
			},
		},
		"the disk is above its ceiling: it was cut off": {
			disk:    etag.Stored{Databases: map[string]uint64{"a": step + 5}},
			cluster: &etag.ClusterView{Databases: known{"a": {Ceiling: step}}},
		},
		"the last etag is above the ceiling": {
			disk:    clean(map[string]uint64{"a": 5}),
			cluster: &etag.ClusterView{Clean: true, Databases: known{"a": {Ceiling: step, Last: step + 9}}},
			want: etag.Decision{
				Raises: []etag.Raise{{"a", step + 9}},
				Behind: []etag.Behind{{Database: "a", Disk: 5, Known: step + 9}},
			},
		},
		"the ceiling alone shows an old disk": {
			disk:    etag.Stored{Databases: map[string]uint64{"a": 5}},
			cluster: &etag.ClusterView{Databases: known{"a": {Ceiling: 5 * step}}},
			want: etag.Decision{
				Raises: []etag.Raise{{"a", 5 * step}},
				Behind: []etag.Behind{{Database: "a", Disk: 5, Known: 3 * step}},
			},
		},
		"the start number alone shows an old disk": {
			disk:    etag.Stored{Start: 3, Databases: map[string]uint64{"a": 5}},
			cluster: &etag.ClusterView{Start: 6, Databases: known{"a": {Ceiling: step}}},
			want:    etag.Decision{Raises: []etag.Raise{{"a", step}}, MissedStarts: 2},
		},
		"start numbers that follow each other": {
			disk:    etag.Stored{Start: 3, Databases: map[string]uint64{"a": 5}},
			cluster: &etag.ClusterView{Start: 4, Databases: known{"a": {Ceiling: step}}},
			want:    etag.Decision{Raises: []etag.Raise{{"a", step}}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := etag.Reconcile(tc.disk, tc.cluster)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.SetBack() != (len(tc.want.Behind) > 0 || tc.want.MissedStarts > 0) {
				t.Errorf("SetBack = %t", got.SetBack())
			}
		})
	}
}

func TestNextCeiling(t *testing.T) {
	for _, tc := range []struct {
		reserved, ceiling, next uint64
		ask                     bool
	}{
		{0, 0, 2 * step, true},
		{65_536, 0, 2 * step, true},
		{65_536, 2 * step, 2 * step, false},
		{step + step/2, 2 * step, 2 * step, false},
		{step + step/2 + 1, 2 * step, 3 * step, true},
		{9 * step, 2 * step, 11 * step, true},
		{etag.MaxEtag - 1, 0, etag.MaxEtag, true},
		{etag.MaxEtag, etag.MaxEtag, etag.MaxEtag, false},
		{1<<64 - 1, 7, etag.MaxEtag, true},
	} {
		next, ask := etag.NextCeiling(tc.reserved, tc.ceiling)
		if next != tc.next || ask != tc.ask {
			t.Errorf("NextCeiling(%d, %d) = %d, %t; want %d, %t", tc.reserved, tc.ceiling, next, ask, tc.next, tc.ask)
		}
	}
}

// cluster is the bookkeeping on the other side.
type cluster struct {
	start     uint64
	clean     bool
	databases known
}

// announce opens a start and returns what was known before.
func (cl *cluster) announce() *etag.ClusterView {
	cl.start++
	view := &etag.ClusterView{Start: cl.start, Clean: cl.clean, Databases: cl.databases}
	cl.clean = false
	return view
}

func (cl *cluster) raise(reserved map[string]uint64) {
	updated := make(known)
	for name, database := range cl.databases {
		updated[name] = database
	}
	for name, value := range reserved {
		ceiling, _ := etag.NextCeiling(value, updated[name].Ceiling)
		updated[name] = etag.ClusterDatabase{Ceiling: ceiling, Last: updated[name].Last}
	}
	cl.databases = updated
}

func (cl *cluster) stopped(last map[string]uint64) {
	updated := make(known)
	for name, database := range cl.databases {
		updated[name] = etag.ClusterDatabase{Ceiling: database.Ceiling, Last: last[name]}
	}
	cl.clean, cl.databases = true, updated
}

// TestNoEtagComesTwiceFromOldCopies starts and stops a node many times, now and
// then from an older copy of its disk, always with the cluster reachable.
func TestNoEtagComesTwiceFromOldCopies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cl, d := &cluster{}, &disk{}
		copies := []etag.Stored{}
		highest := map[string]uint64{}
		for range rapid.IntRange(1, 12).Draw(t, "starts") {
			old := false
			if len(copies) > 0 && rapid.Bool().Draw(t, "set back") {
				d.state = clone(rapid.SampledFrom(copies).Draw(t, "copy"))
				old = true
			}
			c := open(t, &fakeStore{disk: d}, etag.Config{BlockSize: 64})
			view := cl.announce()
			decision := etag.Reconcile(c.Opened(), view)
			if decision.SetBack() && !old {
				t.Fatalf("a newest disk is taken for an old one: %+v", decision)
			}
			for _, raise := range decision.Raises {
				c.Raise(raise.Database, raise.Floor)
			}
			if err := c.Started(view.Start); err != nil {
				t.Fatal(err)
			}
			for range rapid.IntRange(0, 20).Draw(t, "calls") {
				database := databases.Draw(t, "database")
				// The service keeps the ceiling ahead of what is handed out.
				c.Raise(database, 1)
				cl.raise(c.Reserved())
				first, err := c.NextBlock(database, rapid.IntRange(1, 1000).Draw(t, "n"))
				if err != nil {
					t.Fatal(err)
				}
				if first <= highest[database] {
					t.Fatalf("%s: etag %d after %d", database, first, highest[database])
				}
				highest[database] = c.Last()[database]
				cl.raise(c.Reserved())
			}
			copies = append(copies, d.read())
			if rapid.Bool().Draw(t, "clean") {
				closeCleanly(t, c)
				cl.stopped(c.Last())
				copies = append(copies, d.read())
				continue
			}
			left := &disk{state: d.read()}
			_ = c.Close()
			d = left
		}
	})
}
