package fsm

import (
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// FuzzApplyOperation: whatever an operation holds, it is applied or refused, and
// what was decoded by hand is what the generated code decodes.
func FuzzApplyOperation(f *testing.F) {
	for _, op := range []*raftlogv1.Operation{
		opNext("users", 3), opSeed("users", 5, true, proto.Int64(0)), opDelete("users", true),
		opHiLo(&raftlogv1.HiLoNext{Tag: "orders", LastSize: 32, Token: 7, ServerTag: "A"}),
		opReturn(&raftlogv1.HiLoReturn{Tag: "orders", Low: 1, High: 32, Last: 3}), opHiLoSetTo("orders", 50, 32),
		opClaimID("users/4"), opReleaseID("users/4"), opSet("max-claims", 4), opBootstrapABC(),
		opRaiseEtags("A", map[string]uint64{"x": 5}), opCleanStop("A", 0, map[string]uint64{"x": 5}),
		keyed(opNext("users", 1), &raftlogv1.RequestKey{Key: make([]byte, 16), Fingerprint: 7, Retry: true, Since: 3}),
	} {
		f.Add(encodeOperation(op))
	}
	f.Add(JoinOperation(&raftlogv1.MemberJoin{Member: testMember("D")}, nil))
	f.Add(AnnounceOperation(testMember("A")))
	f.Add(RemoveOperation("A", nil, 0))
	f.Add(FormatRaiseOperation(1))
	base := restoredAt(f, 5)
	f.Fuzz(func(t *testing.T, data []byte) {
		compareDecoded(t, data)
		s := restored(t, base)
		g := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{data, data}})
		entry := raftlog.AppendEntry(nil, raftlog.Header{Format: 1, ClusterID: testCluster}, [][]byte{g})
		_, before := s.Hash()
		results, err := s.Apply(6, entry)
		if errors.Is(err, ErrCorrupt) && len(data) > raftlog.MaxEntryBytes/2 {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		refused := 0
		for _, b := range results[0].Results {
			r, err := DecodeResult(b)
			if err != nil {
				t.Fatal(err)
			}
			if r.GetRefusal() != nil {
				refused++
			}
		}
		_, after := s.Hash()
		if refused == 2 && before != after {
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

// compareDecoded compares the decoding by hand with the generated code.
func compareDecoded(t *testing.T, data []byte) {
	t.Helper()
	op, err := decodeOperation(data)
	if err != nil {
		return
	}
	var m raftlogv1.Operation
	if proto.Unmarshal(data, &m) != nil {
		return // It looks deeper, and at UTF-8; that is refused later.
	}
	diff(t, m.GetDatabase(), string(op.database))
	if k := m.GetRequest(); k != nil {
		diff(t, true, op.keyed)
		diff(t, k.GetKey(), op.request.key[:])
		diff(t, k.GetFingerprint(), op.request.fingerprint)
		diff(t, k.GetRetry(), op.request.retry)
		diff(t, k.GetSince(), op.request.since)
		diff(t, k.GetFingerprintBefore(), op.request.before)
	}
	if next := m.GetIdentityNext(); next != nil {
		got, err := decodeIdentityNext(op.payload)
		if err != nil {
			return
		}
		diff(t, next.GetName(), string(got.name))
		diff(t, next.GetCount(), got.count)
		diff(t, next.GetSeparator(), string(got.separator))
	}
}
