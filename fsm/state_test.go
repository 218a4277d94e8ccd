package fsm

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// mustNotChange runs f, which must leave the state as it is.
func (l *testLog) mustNotChange(f func()) {
	l.t.Helper()
	index, hash := l.state.Hash()
	f()
	if i, h := l.state.Hash(); i != index || h != hash {
		l.t.Fatalf("from index %d and hash %x to %d and %x", index, hash, i, h)
	}
}

func TestAnEntryOfANewerFormatChangesNothing(t *testing.T) {
	l := newFormedLog(t)
	g := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{encodeOperation(opNext("users", 1))}})
	data := raftlog.AppendEntry(nil, raftlog.Header{Format: 2, ClusterID: testCluster}, [][]byte{g})
	l.mustNotChange(func() {
		_, err := l.state.Apply(2, data)
		var unknown *raftlog.UnknownFormatError
		if !errors.As(err, &unknown) || unknown.Format != 2 || unknown.Known != 1 {
			t.Fatalf("got %v", err)
		}
	})
	later := New(Config{MaxFormat: 2})
	for _, e := range l.entries {
		if _, err := later.Apply(e.index, e.data); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := later.Apply(2, data); err != nil {
		t.Fatalf("a release that knows the format: %v", err)
	}
	if _, ok := later.Identity("db", "users"); !ok {
		t.Fatal("it was not applied")
	}
}

func TestEntriesThatMakeTheNodeStop(t *testing.T) {
	l := newFormedLog(t)
	good := l.encode(raftlog.Group{Operations: [][]byte{encodeOperation(opNext("users", 1))}})
	other := raftlog.AppendEntry(nil, raftlog.Header{Format: 1, ClusterID: bytes.Repeat([]byte{9}, 16)}, nil)
	none := raftlog.AppendEntry(nil, raftlog.Header{Format: 1}, nil)
	for name, c := range map[string]struct {
		index uint64
		data  []byte
		want  error
	}{
		"damaged":              {2, good[:len(good)-1], ErrCorrupt},
		"empty":                {2, nil, ErrCorrupt},
		"of another cluster":   {2, other, ErrWrongCluster},
		"of no cluster":        {2, none, ErrWrongCluster},
		"applied already":      {1, good, ErrOrder},
		"before anything else": {0, good, ErrOrder},
	} {
		t.Run(name, func(t *testing.T) {
			l.mustNotChange(func() {
				if _, err := l.state.Apply(c.index, c.data); !errors.Is(err, c.want) {
					t.Fatalf("want %v, got %v", c.want, err)
				}
			})
		})
	}
}

func TestBootstrapMustBeOfTheEntrysCluster(t *testing.T) {
	l := newLog(t)
	b := BootstrapOperation(bytes.Repeat([]byte{9}, clusterIDBytes), []*raftlogv1.Member{testMember("A")})
	if r := l.raw(b).GetRefusal(); r.GetField() != "cluster_id" {
		t.Fatalf("got %v", r)
	}
	short := BootstrapOperation([]byte("short"), []*raftlogv1.Member{testMember("A")})
	if r := l.raw(short).GetRefusal(); r.GetField() != "cluster_id" {
		t.Fatalf("got %v", r)
	}
	// A leader that has no state yet does not know the cluster's id.
	b = BootstrapOperation(testCluster, []*raftlogv1.Member{testMember("A")})
	g := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{b}})
	results, err := l.state.Apply(9, raftlog.AppendEntry(nil, raftlog.Header{Format: 1}, [][]byte{g}))
	if err != nil {
		t.Fatal(err)
	}
	l.mustApplied(l.result(results[0], 0))
	diff(t, testCluster, l.state.ClusterID())
}

func TestABadOperationFailsAlone(t *testing.T) {
	unknownField := protowire.AppendVarint(protowire.AppendTag(encodeOperation(opNext("x", 1)), 99, protowire.VarintType), 1)
	nested := encodeOperation(opClaimID("x"))
	deep := protowire.AppendBytes(protowire.AppendTag([]byte{0x0a, 2, 'd', 'b'}, opClaim, protowire.BytesType), []byte{0x98, 0x06, 0x01})
	for name, bad := range map[string][]byte{
		"empty":                    {},
		"no message":               {0xff},
		"only a database":          {0x0a, 2, 'd', 'b'},
		"two kinds":                append(bytes.Clone(encodeOperation(opNext("x", 1))), nested...),
		"unknown field":            unknownField,
		"unknown field in payload": deep,
		"unknown field in next":    protowire.AppendBytes(protowire.AppendTag([]byte{0x0a, 2, 'd', 'b'}, opIdentityNext, protowire.BytesType), []byte{0x20, 0x01}),
		"database as number":       {0x08, 1, 0x52, 0},
		"kind as number":           {0x50, 1},
		"group field":              {0x53, 0x54},
		"fixed32 field":            {0x55, 1, 2, 3, 4},
		"cut short":                encodeOperation(opNext("x", 1))[:5],
		"payload cut short":        {0x0a, 2, 'd', 'b', 0x52, 3, 0x0a, 9, 'x'},
		"name is no UTF-8":         {0x0a, 2, 'd', 'b', 0x52, 8, 0x0a, 1, 0xff, 0x10, 1, 0x1a, 1, '/'},
		"claim is no UTF-8":        {0x0a, 2, 'd', 'b', 0x82, 1, 3, 0x0a, 1, 0xff},
		"separator is no UTF-8":    {0x0a, 2, 'd', 'b', 0x52, 8, 0x0a, 1, 'x', 0x10, 1, 0x1a, 1, 0xff},
		"database is no UTF-8":     {0x0a, 1, 0xff, 0x52, 8, 0x0a, 1, 'x', 0x10, 1, 0x1a, 1, '/'},
		"short request key":        encodeOperation(keyed(opNext("x", 1), &raftlogv1.RequestKey{Key: []byte("short")})),
		"long request key":         encodeOperation(keyed(opNext("x", 1), &raftlogv1.RequestKey{Key: make([]byte, 17)})),
		"no request key":           encodeOperation(keyed(opNext("x", 1), &raftlogv1.RequestKey{Fingerprint: 1})),
		"two request keys":         KeyedOperation(encodeOperation(keyed(opNext("x", 1), key(1, 1))), [16]byte{2}),
		"odd request key":          append(encodeOperation(opNext("x", 1)), 0x12, 2, 0x38, 1),
		"name too long":            encodeOperation(opNext(strings.Repeat("x", 2001), 1)),
		"tag too long":             encodeOperation(opHiLo(&raftlogv1.HiLoNext{Tag: strings.Repeat("x", 2001)})),
		"id too long":              encodeOperation(opClaimID(strings.Repeat("x", 2026))),
		"member without id":        JoinOperation(&raftlogv1.Member{Tag: "X"}),
		"no member":                JoinOperation(nil),
		"member of nowhere":        JoinOperation(&raftlogv1.Member{Id: nodeNamed("x"), RaftAddress: strings.Repeat("x", 513)}),
		"announcement of nobody":   AnnounceOperation(nil),
	} {
		t.Run(name, func(t *testing.T) {
			l := newFormedLog(t)
			good := encodeOperation(opNext("users", 1))
			_, before := l.state.Hash()
			alone := l.apply(raftlog.Group{Operations: [][]byte{bad}})
			if _, after := l.state.Hash(); before != after {
				t.Fatal("the bad operation changed the state")
			}
			if r := l.result(alone[0], 0); r.GetRefusal().GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_INVALID {
				t.Fatalf("got %v", r)
			}
			g := l.apply(raftlog.Group{Operations: [][]byte{good, bad, good}})[0]
			for i, want := range map[int]int64{0: 1, 2: 2} {
				diff(t, want, l.result(g, i).GetIdentityNext().GetValues()[0].GetFirst())
			}
			if l.result(g, 1).GetRefusal() == nil {
				t.Fatal("the bad operation was not refused")
			}
		})
	}
}

func TestLargestNamesAreTaken(t *testing.T) {
	l := newFormedLog(t)
	name := strings.Repeat("n", 2000)
	l.mustApplied(l.do(opNext(name, 1)))
	l.mustApplied(l.do(opHiLo(&raftlogv1.HiLoNext{Tag: name})))
	l.mustApplied(l.do(opClaimID(strings.Repeat("i", 2025))))
	s := restored(t, snapshotOf(t, l.state))
	_, hash := l.state.Hash()
	if _, again := s.Hash(); again != hash {
		t.Fatal("lost in the snapshot")
	}
	// Names that cannot be are not found, and list nothing.
	long := strings.Repeat("n", 70_000)
	if _, ok := s.HiLo("db", long); ok {
		t.Fatal("found")
	}
	if found := s.HiLos("db", "", long, 5); found != nil {
		t.Fatalf("found %v", found)
	}
	if found := s.HiLos("db", "n", strings.Repeat("n", 1999), 5); len(found) != 1 {
		t.Fatalf("found %v", found)
	}
}

func TestABlockComesInAtMost64Pieces(t *testing.T) {
	l := newFormedLog(t)
	for i := range 200 {
		l.mustApplied(l.do(opClaimID("users/" + itoa(int64(2*i+2)))))
	}
	r := l.mustApplied(l.do(opNext("users", 64)))
	values := r.GetIdentityNext().GetValues()
	if len(values) != 64 || values[63].GetLast() != 127 {
		t.Fatalf("%d pieces, the last one %v", len(values), values[len(values)-1])
	}
	r = l.mustApplied(l.do(opNext("users", 1000)))
	if n := len(r.GetIdentityNext().GetValues()); n > 64 {
		t.Fatalf("%d pieces", n)
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func TestIdleTimeDoesNotOverflow(t *testing.T) {
	for _, c := range []struct {
		now, then int64
		want      time.Duration
	}{
		{10, 4, 6},
		{4, 10, 0},
		{4, 4, 0},
		{math.MaxInt64, math.MinInt64, math.MaxInt64},
		{math.MinInt64, math.MaxInt64, 0},
		{1, -math.MaxInt64, math.MaxInt64},
	} {
		diff(t, c.want, idleTime(c.now, c.then))
	}
}

func TestAKeyedAnnouncementCountsOnce(t *testing.T) {
	l := newFormedLog(t)
	announce := KeyedOperation(AnnounceOperation(testMember("A")), [16]byte{1, 2, 3})
	first := l.mustApplied(l.raw(announce))
	l.mustApplied(l.do(opNext("users", 1)))
	again := l.mustApplied(l.raw(announce))
	diff(t, first, again)
	if first.GetMember().GetEtags().GetStart() != 1 {
		t.Fatalf("got %v", first)
	}
	if second := l.announce("A"); second == first.GetMember().GetSession() {
		t.Fatal("the next start has the same session")
	}
}

func TestSkipOnlyMovesForward(t *testing.T) {
	s := New(Config{})
	s.Skip(5)
	s.Skip(3)
	if s.AppliedIndex() != 5 {
		t.Fatalf("at %d", s.AppliedIndex())
	}
	if index, _ := s.Hash(); index != 5 {
		t.Fatalf("at %d", index)
	}
}

func TestWaitApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newFormedLog(t)
		if err := l.state.WaitApplied(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		done := make(chan uint64, 3)
		for _, index := range []uint64{2, 3, 9} {
			go func() {
				if l.state.WaitApplied(t.Context(), index) == nil {
					done <- index
				}
			}()
		}
		synctest.Wait()
		l.do(opNext("users", 1))
		diff(t, uint64(2), <-done)
		l.state.Skip(3)
		diff(t, uint64(3), <-done)
		other := restoredAt(t, 9)
		if err := l.state.Restore(bytes.NewReader(other)); err != nil {
			t.Fatal(err)
		}
		diff(t, uint64(9), <-done)
	})
}

// restoredAt returns a snapshot of the tests' cluster at an index.
func restoredAt(t testing.TB, index uint64) []byte {
	l := newFormedLog(t)
	l.state.Skip(index)
	return snapshotOf(t, l.state)
}

func TestWaitAppliedGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.WaitApplied(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if len(s.applied.waiting) != 0 {
			t.Fatal("it is still waiting")
		}
	})
}

func TestReadsReturnCopies(t *testing.T) {
	l := newFormedLog(t)
	l.state.Members()[0].Tag = "changed"
	l.state.ClusterID()[0]++
	diff(t, "A", l.state.Members()[0].GetTag())
	diff(t, testCluster, l.state.ClusterID())
}

func TestSettingsAreListedAndComplete(t *testing.T) {
	s := New(Config{})
	infos := SettingInfos()
	if len(infos) != int(settingCount) {
		t.Fatalf("%d settings", len(infos))
	}
	for i, setting := range s.Settings() {
		diff(t, infos[i], setting.SettingInfo)
		diff(t, setting.Default, setting.Value)
		if setting.Key == "" || setting.Description == "" || setting.Default < setting.Min || setting.Default > setting.Max {
			t.Errorf("%+v", setting)
		}
		one, ok := s.Setting(setting.Key)
		if !ok || one != setting {
			t.Errorf("%+v", one)
		}
	}
}

func TestRegistryMethodsAreTheFunctions(t *testing.T) {
	s, m := New(Config{}), testMember("A")
	for _, pair := range [][2][]byte{
		{BootstrapOperation(testCluster, []*raftlogv1.Member{m}), s.BootstrapOperation(testCluster, []*raftlogv1.Member{m})},
		{JoinOperation(m), s.JoinOperation(m)},
		{AnnounceOperation(m), s.AnnounceOperation(m)},
		{PromoteOperation(m.GetId()), s.PromoteOperation(m.GetId())},
		{RemoveOperation("A"), s.RemoveOperation("A")},
		{FormatRaiseOperation(2), s.FormatRaiseOperation(2)},
		{KeyedOperation(nil, [16]byte{1}), s.KeyedOperation(nil, [16]byte{1})},
	} {
		diff(t, pair[0], pair[1])
	}
	if _, err := s.DecodeResult([]byte{0xff}); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("got %v", err)
	}
	if s.Etags(m.GetId()) != nil || s.Etags([]byte("short")) != nil || s.ClusterID() != nil {
		t.Fatal("an empty state knows something")
	}
}

// TestAppliedEntriesAreNotKept: Raft owns the bytes it hands over.
func TestAppliedEntriesAreNotKept(t *testing.T) {
	l := newFormedLog(t)
	session := l.announce("A")
	ops := []*raftlogv1.Operation{
		opNext("users", 1), opSeed("seeded", 5, false, nil), opHiLo(&raftlogv1.HiLoNext{Tag: "tag"}),
		opClaimID("companies/7"), opSet("max-claims", 77), opRaiseEtags("A", map[string]uint64{"x": 9}),
	}
	g := raftlog.Group{Origin: nodeNamed("node A"), Session: session, Sequence: 1}
	for i, op := range ops {
		g.Operations = append(g.Operations, encodeOperation(keyed(op, key(i+1, 3))))
	}
	g.Operations = append(g.Operations, JoinOperation(testMember("D")), AnnounceOperation(testMember("D")))
	data := l.encode(g)
	if _, err := l.state.Apply(9, data); err != nil {
		t.Fatal(err)
	}
	clear(data)
	if _, hash := l.state.Hash(); hash != hashFromScratch(l.state.contents) {
		t.Fatal("the state shares memory with the entry")
	}
}

func TestTwoStatesFedTheSameLogAreEqual(t *testing.T) {
	l := newFormedLog(t)
	session := l.announce("B")
	for i := range 300 {
		ops := [][]byte{
			encodeOperation(keyed(opNext(benchName(i%17), int64(i%5+1)), key(i%50+1, 1))),
			encodeOperation(opClaimID(benchName(i%17) + "/" + itoa(int64(i)))),
			encodeOperation(opHiLo(&raftlogv1.HiLoNext{Tag: benchName(i % 5), Token: uint64(i)})),
			encodeOperation(opSet("request-window", int64(20+i%7))),
		}
		l.apply(raftlog.Group{Origin: nodeNamed("node B"), Session: session, Sequence: uint64(i + 1), Acknowledged: uint64(max(0, i-3)), Operations: ops})
	}
	other := New(Config{})
	for _, e := range l.entries {
		if _, err := other.Apply(e.index, e.data); err != nil {
			t.Fatal(err)
		}
	}
	index, hash := l.state.Hash()
	if i, h := other.Hash(); i != index || h != hash {
		t.Fatalf("%d:%x and %d:%x", index, hash, i, h)
	}
	if !bytes.Equal(snapshotOf(t, l.state), snapshotOf(t, other)) {
		t.Fatal("their snapshots differ")
	}
}

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
	f.Add(JoinOperation(testMember("D")))
	f.Add(AnnounceOperation(testMember("A")))
	f.Add(RemoveOperation("A"))
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
