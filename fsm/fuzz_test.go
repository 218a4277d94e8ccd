package fsm

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// FuzzApplyOperation: whatever an operation holds, it is applied or refused.
func FuzzApplyOperation(f *testing.F) {
	for _, o := range []*raftlogv1.Operation{
		opNext("users", 3), opSeed("users", 5, true, proto.Int64(0)), opDelete("users", true),
		opHiLo(&raftlogv1.HiLoNext{Tag: "orders", LastSize: 32, Token: 7, ServerTag: "A"}),
		opReturn(&raftlogv1.HiLoReturn{Tag: "orders", Low: 1, High: 32, Last: 3}), opHiLoSetTo("orders", 50, 32),
		opClaimID("users/4"), opReleaseID("users/4"), opSet("max-claims", 4), opBootstrapABC(),
		opRaiseEtags("A", map[string]uint64{"x": 5}), opCleanStop("A", 0, map[string]uint64{"x": 5}),
		keyed(opNext("users", 1), &raftlogv1.RequestKey{Key: make([]byte, 16), Fingerprint: 7, Retry: true, Since: 3}),
	} {
		f.Add(encodeOperation(o))
	}
	f.Add(addOperation(&raftlogv1.MemberAdd{Member: testMember("D")}))
	f.Add(announceOperation(testMember("A")))
	f.Add(removeOperation("A", 0))
	f.Add(formatRaiseOperation(1))
	for _, o := range seriesOperations() {
		f.Add(o)
	}
	l := newFormedLog(f)
	for _, o := range seriesOperations()[:2] {
		l.mustApplied(l.raw(o))
	}
	base := snapshotOf(f, l.state)
	f.Fuzz(func(t *testing.T, data []byte) {
		s := restored(t, base)
		g := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{data, data}})
		entry := raftlog.AppendEntry(nil, raftlog.Header{Format: 1, ClusterID: testCluster}, [][]byte{g})
		_, before := s.Hash()
		results, err := s.Apply(l.index+1, entry)
		if errors.Is(err, ErrCorrupt) && len(data) > raftlog.MaxEntryBytes/2 {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		for _, b := range results[0].Results {
			r, err := decodeResult(b)
			if err != nil {
				t.Fatal(err)
			}
			if r.GetRefusal() != nil {
				refused++
			}
		}
		_, after := s.Hash()
		if o, err := op.Decode(data); refused == 2 && before != after && (err != nil || o.Kind < op.KindSeriesDefine) {
			t.Fatal("a refused operation changed the state")
		}
		if after != hashFromScratch(s.contents) {
			t.Fatal("the hash is wrong")
		}
		if _, hash := restored(t, snapshotOf(t, s)).Hash(); hash != after {
			t.Fatal("the snapshot differs")
		}
	})
}
