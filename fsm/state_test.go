package fsm

import (
	"bytes"
	"errors"
	"testing"

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
	data := raftlog.AppendEntry(nil, raftlog.Header{Format: raftlog.FormatVersion + 1, ClusterID: testCluster}, [][]byte{g})
	l.mustNotChange(func() {
		_, err := l.state.Apply(2, data)
		var unknown *raftlog.UnknownFormatError
		if !errors.As(err, &unknown) || unknown.Format != raftlog.FormatVersion+1 || unknown.Known != raftlog.FormatVersion {
			t.Fatalf("got %v", err)
		}
	})
	later := New(Config{MaxFormat: raftlog.FormatVersion + 1})
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

// TestARaiseBeyondTheProgramMakesTheNodeStop: what follows it, also in its own entry, has rules that the
// program does not know.
func TestARaiseBeyondTheProgramMakesTheNodeStop(t *testing.T) {
	l := newLog(t)
	m := testMember("A")
	m.LogFormat = laterFormat
	l.mustApplied(l.raw(bootstrapOperation(testCluster, []*raftlogv1.Member{m})))
	raise := raftlog.Group{Operations: [][]byte{formatRaiseOperation(laterFormat), encodeOperation(opNext("users", 1))}}
	_, err := l.state.Apply(l.index+1, l.encode(raise))
	var unknown *raftlog.UnknownFormatError
	if !errors.As(err, &unknown) || unknown.Format != laterFormat || l.state.AppliedIndex() != l.index {
		t.Fatalf("got %v, applied to %d", err, l.state.AppliedIndex())
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
	b := bootstrapOperation(bytes.Repeat([]byte{9}, clusterIDBytes), []*raftlogv1.Member{testMember("A")})
	if r := l.raw(b).GetRefusal(); r.GetField() != "cluster_id" {
		t.Fatalf("got %v", r)
	}
	short := bootstrapOperation([]byte("short"), []*raftlogv1.Member{testMember("A")})
	if r := l.raw(short).GetRefusal(); r.GetField() != "cluster_id" {
		t.Fatalf("got %v", r)
	}
	// A leader that has no state yet does not know the cluster's id.
	b = bootstrapOperation(testCluster, []*raftlogv1.Member{testMember("A")})
	g := raftlog.AppendGroup(nil, raftlog.Group{Operations: [][]byte{b}})
	results, err := l.state.Apply(9, raftlog.AppendEntry(nil, raftlog.Header{Format: 1}, [][]byte{g}))
	if err != nil {
		t.Fatal(err)
	}
	l.mustApplied(l.result(results[0], 0))
	diff(t, testCluster, l.state.ClusterID())
}

func TestAKeyedAnnouncementCountsOnce(t *testing.T) {
	l := newFormedLog(t)
	announce := keyedAnnouncement(testMember("A"), [16]byte{1, 2, 3})
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

func TestReadsReturnCopies(t *testing.T) {
	l := newFormedLog(t)
	l.state.Members()[0].Tag = "changed"
	l.state.ClusterID()[0]++
	diff(t, "A", l.state.Members()[0].GetTag())
	diff(t, testCluster, l.state.ClusterID())
}

func TestSettingsAreListedAndComplete(t *testing.T) {
	s := New(Config{})
	for i, setting := range s.Settings() {
		diff(t, settingTable[i], setting.SettingInfo)
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

func TestAnEmptyStateKnowsNothing(t *testing.T) {
	s, m := New(Config{}), testMember("A")
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
	g.Operations = append(g.Operations, addOperation(&raftlogv1.MemberAdd{Member: testMember("D")}), announceOperation(testMember("D")))
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
		l.apply(raftlog.Group{
			Origin: nodeNamed("node B"), Session: session, Sequence: uint64(i + 1),
			Acknowledged: uint64(max(0, i-3)), Operations: ops,
		})
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
