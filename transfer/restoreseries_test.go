package transfer

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/transfer/counterfile"
)

// refuser is a cluster that refuses records, and has some series already.
type refuser struct {
	recorder
	refuse func(database, name string, numbers bool) error
	// series are by database; true is suspended.
	series map[string]map[string]bool
	// more is how many calls say that they are to be repeated.
	more int
}

func (j *refuser) Invoke(ctx context.Context, method string, req, res any, opts ...grpc.CallOption) error {
	if err := j.recorder.Invoke(ctx, method, req, res, opts...); err != nil {
		return err
	}
	switch req := req.(type) {
	case *idnodev1.ImportSeriesRequest:
		record := &raftlogv1.SeriesImport{}
		if err := proto.Unmarshal(req.GetRecord(), record); err != nil {
			return err
		}
		if j.more > 0 {
			j.more--
			res.(*idnodev1.ImportSeriesResponse).More = true
			return nil
		}
		return j.refuse(req.GetDatabase(), nameIn(record), record.GetNumbers() != nil)
	case *idnodev1.ListSeriesRequest:
		list := res.(*idnodev1.ListSeriesResponse)
		for name, suspended := range j.series[req.GetDatabase()] {
			if name > req.GetPageToken() && (list.GetNextPageToken() == "" || name < list.GetNextPageToken()) {
				list.Series, list.NextPageToken = []*idnodev1.Series{{Name: name, Suspended: suspended}}, name
			}
		}
	}
	return nil
}

// manySeries is a backup of three series in two databases.
func manySeries(t *testing.T) *Backup {
	t.Helper()
	records := []*raftlogv1.SnapshotRecord{
		{Record: &raftlogv1.SnapshotRecord_Database{Database: "default"}}, {Record: &raftlogv1.SnapshotRecord_Database{Database: "shop"}},
	}
	for database, names := range [][]string{{"bills"}, {"bills", "orders"}} {
		for _, name := range names {
			records = append(records,
				&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Series{Series: &raftlogv1.SeriesRecord{
					Database: uint32(database),
					Name:     name,
				}}},
				&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_SeriesNumbers{SeriesNumbers: &raftlogv1.SeriesNumbersRecord{
					Database: uint32(database), Name: name, First: 1, Numbers: []*raftlogv1.SeriesStored{{Key: "a", State: 1}},
				}}},
				&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_SeriesLost{SeriesLost: &raftlogv1.SeriesLostRecord{
					Database: uint32(database), Name: name, Key: "z", Number: 1,
				}}})
		}
	}
	return open(t, records...)
}

// TestARefusedSeriesDoesNotStopTheRest: the others are merged, and all floors. Of the refused
// one nothing more is tried. A key that has lost its number is no call.
func TestARefusedSeriesDoesNotStopTheRest(t *testing.T) {
	differs := status.Error(codes.FailedPrecondition, "number 1 has another key")
	cluster := &refuser{refuse: func(database, name string, numbers bool) error {
		if database == "default" && name == "bills" && numbers {
			return fmt.Errorf("tried 2 nodes: %w", differs)
		}
		return nil
	}}
	floors := []counterfile.Counter{{Database: "shop", Kind: counterfile.Identity, Name: "i", Value: 9000}}
	done, err := (&Restore{Backup: manySeries(t), Conn: cluster, Floors: floors}).Run(t.Context())
	if err != nil || len(done.NotMerged) != 1 || status.Code(done.NotMerged[0].Reason) != codes.FailedPrecondition ||
		done.NotMerged[0].Kind+done.NotMerged[0].Database+done.NotMerged[0].Name != "seriesdefaultbills" {
		t.Fatalf("%+v, %v", done.NotMerged, err)
	}
	records, floor := map[SeriesName]int{}, false
	for _, m := range cluster.requests {
		switch req := m.(type) {
		case *idnodev1.ImportSeriesRequest:
			record := &raftlogv1.SeriesImport{}
			if err := proto.Unmarshal(req.GetRecord(), record); err != nil {
				t.Fatal(err)
			}
			records[SeriesName{req.GetDatabase(), nameIn(record)}]++
		case *idnodev1.MergeCountersRequest:
			floor = floor || !req.GetDryRun() && req.GetDatabases()[0].GetIdentities()[0].GetValue() == 9000
		}
	}
	want := map[SeriesName]int{{"default", "bills"}: 2, {"shop", "bills"}: 2, {"shop", "orders"}: 2}
	if diff := cmp.Diff(want, records); diff != "" || !floor || done.Counters == nil {
		t.Errorf("the floor was merged: %t; records of the series (-want +got):\n%s", floor, diff)
	}
}

// TestWhatIsNoRefusalStopsARestore: the next series would meet it too.
func TestWhatIsNoRefusalStopsARestore(t *testing.T) {
	for _, code := range []codes.Code{
		codes.Unavailable, codes.PermissionDenied, codes.Unauthenticated, codes.Internal,
		codes.DeadlineExceeded, codes.ResourceExhausted,
	} {
		cluster := &refuser{refuse: func(string, string, bool) error { return status.Error(code, "no") }}
		if _, err := (&Restore{Backup: manySeries(t), Conn: cluster}).Run(t.Context()); status.Code(err) != code {
			t.Errorf("%s: %v", code, err)
		}
	}
}

// TestARecordIsRepeated until the cluster reports no more work.
func TestARecordIsRepeated(t *testing.T) {
	cluster := &refuser{more: 3, refuse: func(string, string, bool) error { return nil }}
	if _, err := (&Restore{Backup: manySeries(t), Conn: cluster}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var records [][]byte
	for _, m := range cluster.requests {
		if req, ok := m.(*idnodev1.ImportSeriesRequest); ok {
			records = append(records, req.GetRecord())
		}
	}
	if len(records) != 6+3 || !bytes.Equal(records[0], records[3]) || bytes.Equal(records[3], records[4]) {
		t.Errorf("%d calls", len(records))
	}
}

// TestSeriesHere: the cluster's state of the series in a backup, over all pages of each database.
func TestSeriesHere(t *testing.T) {
	cluster := &refuser{series: map[string]map[string]bool{
		"default": {"aaa": true, "bills": false, "zzz": true}, "shop": {"aaa": false, "orders": true},
	}}
	here, err := (&Restore{Backup: manySeries(t), Conn: cluster}).SeriesHere(t.Context())
	want := SeriesOfBackup{
		New: []SeriesName{{"shop", "bills"}}, Active: []SeriesName{{"default", "bills"}},
		Suspended: []SeriesName{{"shop", "orders"}},
	}
	if diff := cmp.Diff(want, here); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
