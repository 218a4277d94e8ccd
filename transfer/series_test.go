package transfer

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/client/idnodev1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
)

// seriesRecords are those of a backup with a series in its second database.
func seriesRecords() []*raftlogv1.SnapshotRecord {
	return []*raftlogv1.SnapshotRecord{
		{Record: &raftlogv1.SnapshotRecord_Database{Database: "default"}},
		{Record: &raftlogv1.SnapshotRecord_Database{Database: "shop"}},
		{Record: &raftlogv1.SnapshotRecord_Series{Series: &raftlogv1.SeriesRecord{Database: 1, Name: "invoices", Version: 1}}},
		{Record: &raftlogv1.SnapshotRecord_SeriesNumbers{SeriesNumbers: &raftlogv1.SeriesNumbersRecord{
			Database: 1, Name: "invoices", Scope: []string{"2026", "ULM"}, First: 1, Numbers: []*raftlogv1.SeriesStored{
				{Key: "a", State: 2, Date: 20_000, Label: "=1+1"}, {State: 3, Date: 20_001, Reason: "unknown after a restore"}, {Key: "b", State: 257},
			},
		}}},
		{Record: &raftlogv1.SnapshotRecord_SeriesLost{SeriesLost: &raftlogv1.SeriesLostRecord{
			Database: 1, Name: "invoices",
			Key: "zz", Number: 2,
		}}},
	}
}

// TestSeriesAreCounted: what a backup says that it holds is what a restore imports, in the
// file's order.
func TestSeriesAreCounted(t *testing.T) {
	records := seriesRecords()
	b := open(t, records...)
	c := b.Info.GetCounts()
	if c.GetSeries() != 1 || c.GetSeriesKeys() != 3 || c.GetBytes() != 4 || b.Info.GetDatabases()[1].GetSeriesNumbers() != 3 ||
		b.Info.GetDatabases()[0].GetSeries() != 0 {
		t.Errorf("%v", b.Info)
	}
	var r recorder
	if _, err := (&Restore{Backup: b, Conn: &r}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got, want []*raftlogv1.SeriesImport
	for _, m := range records[2:4] { // The last one is no call.
		_, record := seriesRecord(m)
		want = append(want, record)
	}
	for _, m := range r.requests {
		req, ok := m.(*idnodev1.ImportSeriesRequest)
		if !ok {
			continue
		}
		record := &raftlogv1.SeriesImport{}
		if err := proto.Unmarshal(req.GetRecord(), record); err != nil || req.GetDatabase() != "shop" {
			t.Errorf("%v: %v", req, err)
		}
		got = append(got, record)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestTheLargestRecordIsCut: what one call imports fits into a group of the log.
func TestTheLargestRecordIsCut(t *testing.T) {
	records := seriesRecords()[:3]
	numbers := &raftlogv1.SeriesNumbersRecord{
		Database: 1, Name: "invoices", Scope: []string{"2026", "ULM"}, First: 257,
		Closed: true, Begin: 2, Allotted: 1,
	}
	for i := range int64(series.MaxAllotments) {
		numbers.Allotments = append(numbers.Allotments, &raftlogv1.SeriesAllotment{
			From: 1<<40 + i, To: 1<<40 + i, Starts: 1<<39 + i, Until: proto.Int32(math.MaxInt32), Note: strings.Repeat("n", series.MaxNoteBytes),
		})
	}
	for i := range 256 {
		numbers.Numbers = append(numbers.Numbers, &raftlogv1.SeriesStored{
			Key: fmt.Sprintf("%0128d", i), Label: strings.Repeat("l", 64), Reason: strings.Repeat("r", 128), State: 3, Shared: true,
			Date: math.MinInt32, TakenUnixNano: math.MinInt64, ExpiresUnixNano: math.MinInt64,
		})
	}
	b := open(t, append(records, &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_SeriesNumbers{SeriesNumbers: numbers}})...)
	var r recorder
	if _, err := (&Restore{Backup: b, Conn: &r}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	next := int64(257)
	for _, m := range r.requests {
		req, ok := m.(*idnodev1.ImportSeriesRequest)
		record := &raftlogv1.SeriesImport{}
		if !ok || proto.Unmarshal(req.GetRecord(), record) != nil || record.GetNumbers() == nil {
			continue
		}
		n := record.GetNumbers()
		if size := len(req.GetRecord()); size > 60<<10 || n.GetFirst() != next || !n.GetClosed() || n.GetBegin() != 2 ||
			n.GetAllotted() != 1 || len(n.GetAllotments()) != series.MaxAllotments ||
			n.GetNumbers()[0].GetKey() != fmt.Sprintf("%0128d", next-257) {
			t.Errorf("%d bytes from %d on, want %d", size, n.GetFirst(), next)
		}
		next += int64(len(n.GetNumbers()))
	}
	if next != 257+256 {
		t.Errorf("imported up to %d", next-1)
	}
}

// TestASeriesOfNoDatabaseIsDamage.
func TestASeriesOfNoDatabaseIsDamage(t *testing.T) {
	for _, m := range seriesRecords()[2:] {
		path := write(t, &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Database{Database: "default"}}, m)
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "database 1 of 1") {
			t.Errorf("%v: %v", m, err)
		}
	}
}

// TestExportOfNumbers has a line for each, which runs in no spreadsheet.
func TestExportOfNumbers(t *testing.T) {
	records := seriesRecords()
	records[2].GetSeries().Definition = &raftlogv1.SeriesDefinition{Format: "={branch}-{year}-{number}", ResetBy: 1}
	numbers := records[3].GetSeriesNumbers()
	numbers.Allotted, numbers.Allotments = 1, []*raftlogv1.SeriesAllotment{{From: 51, To: 60, Note: "=7", Starts: 2}}
	b := open(t, records...)
	for database, want := range map[string]string{
		"":        "shop,invoices,\"2026,ULM\",1,'=ULM-2024-1,a,confirmed,2024-10-04,'=1+1,,\nshop,invoices,\"2026,ULM\",51,'=ULM-2024-51,,voided,2024-10-05,,unknown after a restore,'=7\nshop,invoices,\"2026,ULM\",52,'=ULM-1970-52,b,none,1970-01-01,,,'=7\n",
		"SHOP":    "shop,invoices,\"2026,ULM\",1,'=ULM-2024-1,a,confirmed,2024-10-04,'=1+1,,\nshop,invoices,\"2026,ULM\",51,'=ULM-2024-51,,voided,2024-10-05,,unknown after a restore,'=7\nshop,invoices,\"2026,ULM\",52,'=ULM-1970-52,b,none,1970-01-01,,,'=7\n",
		"default": "",
	} {
		var out bytes.Buffer
		written, _, err := b.Export(&out, SeriesCSV, database, false)
		if want = strings.Join(seriesColumns, ",") + "\n" + want; err != nil || out.String() != want || written != strings.Count(want, "\n")-1 {
			t.Errorf("%q: %d written, %v:\n%s", database, written, err, &out)
		}
	}
}
