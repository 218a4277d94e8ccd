package exploration

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/snowflake"
)

// clusterID is the world's cluster.
var clusterID = bytes.Repeat([]byte{0xc1}, 16)

// began is the log index at which worlds begin: the cluster is formed by then, and A and
// B have sessions.
const began = 5

// sessionOf is the session with which a node begins.
func sessionOf(node int) uint64 { return began - 1 + uint64(node) }

func nodeID(node int) []byte {
	id := bytes.Repeat([]byte{0}, 16)
	copy(id, memberName(node))
	return id
}

func memberName(node int) string { return string(rune('A' + node)) }

func memberOf(node int, starts uint64) *raftlogv1.Member {
	tag := memberName(node)
	return &raftlogv1.Member{
		Id: nodeID(node), Tag: tag, LogFormat: raftlog.FormatVersion,
		GrpcAddress: tag + ":1", RaftAddress: tag + ":2", Starts: starts, Process: starts,
	}
}

// announcement is the operation that opens a session.
func announcement(node int, starts uint64) []byte {
	return encode(op.Envelope{}, &raftlogv1.MemberAnnounce{Member: memberOf(node, starts)})
}

// newGenesis returns the state in which worlds begin.
func newGenesis(s scenario) *fsm.State {
	live := fsm.New(fsm.Config{})
	for i, operation := range [][]byte{
		encode(op.Envelope{}, &raftlogv1.Bootstrap{
			ClusterId: clusterID, Members: []*raftlogv1.Member{memberOf(0, 0), memberOf(1, 0), memberOf(2, 0)},
		}),
		encode(op.Envelope{}, &raftlogv1.SettingSet{Key: "request-window", Value: s.window}),
		announcement(2, 1),
		announcement(0, 1),
		announcement(1, 1),
	} {
		operations := [][]byte{operation}
		if i == 2 && s.has(takeNumber) {
			operations = append(operations, restoredBooks()...)
		}
		if i == 2 && s.has(takeAllotted) {
			operations = append(operations, restoredBills(s)...)
		}
		if i == 2 && s.has(lease) {
			operations = append(operations, oneWorkerLeft()...)
		}
		results, err := live.Apply(uint64(i)+1, newEntry(clusterID, 0, raftlog.Group{Operations: operations}))
		if err != nil || len(results) != 1 || slices.ContainsFunc(results[0].Results, op.IsRefusal) {
			panic("the world does not begin")
		}
	}
	if live.AppliedIndex() != began {
		panic("the world begins elsewhere")
	}
	return live
}

// restoredBooks are the operations that restore the books from a backup in which number 1 was
// released. Nobody has said since whether a document has it.
func restoredBooks() (operations [][]byte) {
	d := series.DefinitionMessage(series.Definition{Format: "{number}", OnRelease: series.ReleaseReuses})
	for _, payload := range []proto.Message{
		&raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Series{Series: &raftlogv1.SeriesRecord{Name: books, Definition: d, Version: 1}}},
		&raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: &raftlogv1.SeriesNumbersRecord{
			Name: books, First: 1, Numbers: []*raftlogv1.SeriesStored{{State: uint32(series.Released)}}, Origin: &raftlogv1.SeriesOrigin{Version: 1},
		}}},
		&raftlogv1.SeriesResume{Name: books},
	} {
		operations = append(operations, encode(op.Envelope{Database: database}, payload))
	}
	return operations
}

// rangeOf is a range of the bills.
func rangeOf(from, to int64) *raftlogv1.SeriesAllotment {
	return &raftlogv1.SeriesAllotment{From: from, To: to}
}

// backupOf returns the bills of a backup, each of a document of its own.
func backupOf(i uint8) *raftlogv1.SeriesNumbersRecord {
	first := rangeOf(from1, to1)
	first.Until = proto.Int32(0)
	p := &raftlogv1.SeriesNumbersRecord{
		Name: bills, First: 1, Origin: &raftlogv1.SeriesOrigin{Version: 1}, Allotted: 1, Allotments: []*raftlogv1.SeriesAllotment{first},
	}
	for place, number := range backups[i] {
		if place == 0 {
			first.Starts = 1
		} else {
			p.Allotted, p.Allotments = 2, append(p.Allotments, rangeOf(from2, to2))
			p.Allotments[1].Starts = 2
		}
		p.Numbers = append(p.Numbers, &raftlogv1.SeriesStored{State: uint32(series.Confirmed), Key: fmt.Sprint("of ", number)})
	}
	return p
}

// restoredBills are the operations that restore the bills from a backup without numbers. They have both ranges, or
// only the first one where backups are merged.
func restoredBills(s scenario) (operations [][]byte) {
	d := series.DefinitionMessage(series.Definition{Format: "{number}"})
	numbers := backupOf(0)
	if !s.has(mergeBackup) {
		numbers.Allotted, numbers.Allotments = 2, append(numbers.Allotments, rangeOf(from2, to2))
	}
	for _, payload := range []proto.Message{
		&raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Series{Series: &raftlogv1.SeriesRecord{Name: bills, Definition: d, Version: 1}}},
		&raftlogv1.SeriesImport{Record: &raftlogv1.SeriesImport_Numbers{Numbers: numbers}},
		&raftlogv1.SeriesResume{Name: bills},
	} {
		operations = append(operations, encode(op.Envelope{Database: database}, payload))
	}
	return operations
}

// oneWorkerLeft are the operations that define a pool of two workers, one of which is in use for long.
func oneWorkerLeft() (operations [][]byte) {
	layout := snowflake.Layout{Unit: 1, TimeBits: 41, WorkerBits: 1, SequenceBits: 8}
	for _, payload := range []proto.Message{
		&raftlogv1.PoolDefine{Name: pool, Layout: op.PoolLayout(layout), WindowNanos: int64(snowflake.MaxWindow)},
		&raftlogv1.WorkerAcquire{Pool: pool, Holder: "other", Token: 99},
	} {
		operations = append(operations, encode(op.Envelope{Database: database}, payload))
	}
	return operations
}

// newEntry encodes an entry of one group. The leaders' clocks show a time after 1970.
func newEntry(cluster []byte, at time.Duration, g raftlog.Group) []byte {
	h := raftlog.Header{Format: raftlog.FormatVersion, ClusterID: cluster, TimeUnixNano: 1 + int64(at)}
	return raftlog.AppendEntry(nil, h, [][]byte{raftlog.AppendGroup(nil, g)})
}

func encode(e op.Envelope, payload proto.Message) []byte {
	data, err := e.Encode(payload)
	if err != nil {
		panic(err)
	}
	return data
}
