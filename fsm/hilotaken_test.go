package fsm

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestNumbersThatNoRangeTookAreTold: who keeps numbers that were granted in advance hears
// which of them are taken by something else.
func TestNumbersThatNoRangeTookAreTold(t *testing.T) {
	var told []string
	l := newFormedLog(t)
	l.state.cfg.HiLoTaken = func(database, tag string, upTo int64) {
		told = append(told, fmt.Sprintf("%s/%s %d", database, tag, upTo))
	}
	l.state.use(l.state.contents)
	for _, tt := range []struct {
		what    string
		payload proto.Message
		want    []string
	}{
		{"range", &raftlogv1.HiLoNext{Tag: "users", Size: 100}, nil},
		{"last max that was issued", &raftlogv1.HiLoNext{Tag: "users", Size: 100, LastMax: 100}, nil},
		{"return", &raftlogv1.HiLoReturn{Tag: "users", High: 200, Last: 150}, nil},
		{"last max beyond", &raftlogv1.HiLoNext{Tag: "users", Size: 10, LastMax: 1000}, []string{"db/users 1000"}},
		{
			"merge", &raftlogv1.Merge{Hilos: []*raftlogv1.MergeHiLo{{Tag: "users", Max: 5000}, {Tag: "orders", Max: 7}}},
			[]string{"db/users 5000", "db/orders 7"},
		},
		{"merge of what is there", &raftlogv1.Merge{Hilos: []*raftlogv1.MergeHiLo{{Tag: "users", Max: 4}}}, []string{"db/users 4"}},
		{"set", &raftlogv1.HiLoSet{Tag: "users", Expected: 5000, Max: 6000}, []string{"db/users 6000"}},
		{"refused set", &raftlogv1.HiLoSet{Tag: "users", Expected: 1, Max: 6000}, nil},
		{"floor", &raftlogv1.MergeCluster{Floor: 9000}, []string{"/ 9000"}},
		{"no floor", &raftlogv1.MergeCluster{}, nil},
	} {
		told = nil
		database := "db"
		if tt.what == "floor" || tt.what == "no floor" {
			database = ""
		}
		operation, err := op.Envelope{Database: database}.Encode(tt.payload)
		if err != nil {
			t.Fatal(err)
		}
		l.raw(operation)
		if !slices.Equal(told, tt.want) {
			t.Errorf("%s: told %q, want %q", tt.what, told, tt.want)
		}
	}
	snapshot := snapshotOf(t, l.state)
	told = nil
	if err := l.state.Restore(bytes.NewReader(snapshot)); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("/ %d", int64(math.MaxInt64)); !slices.Equal(told, []string{want}) {
		t.Errorf("restore: told %q, want %q", told, want)
	}
}
