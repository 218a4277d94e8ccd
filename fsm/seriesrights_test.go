package fsm

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// TestRightsOnSeriesInTheLog: each operation needs its right, by its kind, on the series that
// it names.
func TestRightsOnSeriesInTheLog(t *testing.T) {
	keys := []*raftlogv1.SeriesKey{{Key: "a", Number: 1}}
	for name, tt := range map[string]struct {
		m    proto.Message
		need rights.Right
	}{
		"take":      {&raftlogv1.SeriesTake{Name: "s", Keys: []string{"a"}}, rights.Number},
		"enter":     {&raftlogv1.SeriesTake{Name: "s", Keys: []string{"a"}, Number: 7, Because: "moved"}, rights.Series},
		"confirm":   {&raftlogv1.SeriesEnd{Name: "s", State: uint32(series.Confirmed), Keys: keys}, rights.Number},
		"void":      {&raftlogv1.SeriesEnd{Name: "s", State: uint32(series.Voided), Keys: keys}, rights.Series},
		"release":   {&raftlogv1.SeriesEnd{Name: "s", State: uint32(series.Released), Keys: keys}, rights.Series},
		"define":    {&raftlogv1.SeriesDefine{Name: "s"}, rights.Series},
		"delete":    {&raftlogv1.SeriesDelete{Name: "s"}, rights.Series},
		"allot":     {&raftlogv1.SeriesAllot{Name: "s"}, rights.Series},
		"close":     {&raftlogv1.SeriesCloseScope{Name: "s"}, rights.Series},
		"resume":    {&raftlogv1.SeriesResume{Name: "s"}, rights.Series},
		"reconcile": {&raftlogv1.SeriesReconcile{Name: "s", Numbers: keys}, rights.Series},
		"import":    {&raftlogv1.SeriesImport{}, rights.Cluster},
	} {
		o, err := op.Decode(onSeries(tt.m))
		if err != nil {
			t.Fatal(err)
		}
		if need, of := needOf(&o); need != tt.need || need != rights.Cluster && string(of) != "s" {
			t.Errorf("%s needs %s on %q, want %s", name, need, of, tt.need)
		}
	}
}
