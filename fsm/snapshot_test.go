package fsm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"
	"testing/iotest"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/internal/dirfile"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/series"
)

// richLog returns a log whose state holds something of everything.
func richLog(t testing.TB) *testLog {
	l := newFormedLog(t)
	session := l.announce("A")
	l.announce("B")
	for i := range 30 {
		l.apply(raftlog.Group{
			Origin: nodeNamed("node A"), Session: session, Sequence: uint64(i + 1), Acknowledged: uint64(max(0, i-4)),
			Operations: [][]byte{
				encodeOperation(keyed(opNext(benchName(i%7), 3), key(i+1, 5))),
				encodeOperation(opHiLo(&raftlogv1.HiLoNext{Tag: benchName(i % 3), Token: uint64(i) << 50})),
				encodeOperation(opClaimID(benchName(i) + "/99")),
			},
		})
	}
	l.mustApplied(l.do(opDelete(benchName(2), false)))
	l.mustApplied(l.do(opSet("request-window", 12)))
	l.mustApplied(l.do(opRaiseEtags("A", map[string]uint64{"x": 1 << 20, "y": 5})))
	l.mustApplied(l.do(opCleanStop("B", 1, map[string]uint64{"x": 77})))
	l.mustApplied(l.raw(addOperation(&raftlogv1.MemberAdd{Member: &raftlogv1.Member{Id: nodeNamed("late"), Watcher: true}})))
	l.mustApplied(l.raw(removeOperation("C", 0)))
	return l
}

func TestARestoredStateIsTheSame(t *testing.T) {
	l := richLog(t)
	data := snapshotOf(t, l.state)
	for name, r := range map[string]io.Reader{
		"at once":     bytes.NewReader(data),
		"byte-wise":   iotest.OneByteReader(bytes.NewReader(data)),
		"data on EOF": iotest.DataErrReader(bytes.NewReader(data)),
	} {
		s := New(Config{})
		if err := s.Restore(r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		diff(t, l.state.Counts(), s.Counts())
		diff(t, l.state.Members(), s.Members())
		diff(t, l.state.Settings(), s.Settings())
		diff(t, l.state.Etags(nodeNamed("node B")), s.Etags(nodeNamed("node B")))
		diff(t, l.state.Databases(), s.Databases())
		diff(t, l.state.AppliedIndex(), s.AppliedIndex())
		diff(t, data, snapshotOf(t, s))
	}
}

// TestNothingOfBeforeIsLeftAfterARestore, which a node that is behind gets from the leader.
func TestNothingOfBeforeIsLeftAfterARestore(t *testing.T) {
	l, data := richLog(t), snapshotOf(t, newFormedLog(t).state)
	if err := l.state.Restore(bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	diff(t, data, snapshotOf(t, l.state))
	diff(t, derived(restored(t, data).contents), derived(l.state.contents))
}

func TestAnEmptyStateHasASnapshot(t *testing.T) {
	s := restored(t, snapshotOf(t, New(Config{})))
	if index, hash := s.Hash(); index != 0 || hash != 0 || s.ClusterID() != nil {
		t.Fatalf("index %d, hash %x", index, hash)
	}
}

func TestASnapshotIsOfItsMoment(t *testing.T) {
	l := richLog(t)
	snapshot := l.state.Snapshot()
	want := snapshotOf(t, l.state)
	session := l.announce("A")
	for i := range 50 {
		l.apply(raftlog.Group{
			Origin: nodeNamed("node A"), Session: session, Sequence: uint64(i + 1),
			Acknowledged: uint64(i), Operations: [][]byte{
				encodeOperation(keyed(opNext(benchName(i%9), 1), key(1000+i, 1))),
				encodeOperation(opDelete(benchName(i%9), i%2 == 0)),
				encodeOperation(opReleaseID(benchName(i) + "/99")),
				encodeOperation(opRaiseEtags("A", map[string]uint64{"x": 1<<20 + uint64(i)})),
			},
		})
	}
	var got bytes.Buffer
	if _, err := snapshot.WriteTo(&got); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got.Bytes()) {
		t.Fatal("the snapshot changed with the state")
	}
	if index := snapshot.Header().GetAppliedIndex(); index != restored(t, want).AppliedIndex() {
		t.Fatalf("the snapshot says index %d", index)
	}
	snapshot.Close()
}

// changing is an operation on one of some series, pools and shares of request ids.
func changing(i int) [][]byte {
	name := fmt.Sprint("s", i%(3*frozenAtOnce))
	return [][]byte{
		onSeries(&raftlogv1.SeriesDefine{Name: name, Definition: series.DefinitionMessage(lasting)}),
		take(name, nil, benchName(i)), end(name, series.Released, benchName(i/2)), poolOf(name), acquire(name, uint64(i+1)),
		keyedBy(name, i), onSeries(&raftlogv1.SeriesDelete{Name: fmt.Sprint("s", i%7), ExpectedVersion: 1}),
	}
}

// TestWhatASnapshotFreezesLater is as it was all the same: series, pools and shares of request ids change before,
// while and after it is written.
func TestWhatASnapshotFreezesLater(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(opSet("request-window", 500)))
	i := 0
	change := func(times int) {
		for range times {
			l.apply(raftlog.Group{Operations: changing(i)})
			i += 5
		}
	}
	change(400)
	for _, before := range []int{0, 1, 50, 400} {
		want := snapshotOf(t, l.state)
		first, second := l.state.Snapshot(), l.state.Snapshot()
		change(before)
		var got bytes.Buffer
		for _, snapshot := range []*Snapshot{first, second} {
			got.Reset()
			if _, err := snapshot.WriteTo(&writingBetween{&got, func() { change(1) }}); err != nil {
				t.Fatal(err)
			}
			diff(t, want, got.Bytes())
		}
		diff(t, hashFromScratch(l.state.contents), l.state.contents.hash())
		snapshotOf(t, restored(t, snapshotOf(t, l.state)))
	}
}

// writingBetween does something at each write.
type writingBetween struct {
	io.Writer
	do func()
}

func (w *writingBetween) Write(b []byte) (int, error) {
	w.do()
	return w.Writer.Write(b)
}

func TestASnapshotThatCannotBeWritten(t *testing.T) {
	l := richLog(t)
	size := len(snapshotOf(t, l.state))
	for _, room := range []int{0, 10, size - 1} {
		snapshot := l.state.Snapshot()
		_, err := snapshot.WriteTo(&smallDisk{room: room})
		if !errors.Is(err, errDiskFull) {
			t.Fatalf("room for %d of %d bytes: %v", room, size, err)
		}
		snapshot.Close()
	}
}

var errDiskFull = errors.New("disk full")

// smallDisk takes so many bytes and no more.
type smallDisk struct{ room int }

func (d *smallDisk) Write(b []byte) (int, error) {
	n := min(len(b), d.room)
	d.room -= n
	if n < len(b) {
		return n, errDiskFull
	}
	return n, nil
}

func TestAReadersErrorIsNoDamage(t *testing.T) {
	data := snapshotOf(t, richLog(t).state)
	broken := errors.New("broken cable")
	for _, at := range []int{0, 20, len(data) / 2, len(data)} {
		s := New(Config{})
		err := s.Restore(io.MultiReader(bytes.NewReader(data[:at]), iotest.ErrReader(broken)))
		if at < len(data) && (!errors.Is(err, broken) || errors.Is(err, ErrCorrupt)) {
			t.Fatalf("at %d: %v", at, err)
		}
	}
}

// TestEveryDamagedByteIsNoticed flips bits of each byte, and cuts at each length.
func TestEveryDamagedByteIsNoticed(t *testing.T) {
	l := richLog(t)
	data := snapshotOf(t, l.state)
	s := New(Config{})
	untouched := snapshotOf(t, s)
	for i := range data {
		for _, bits := range []byte{0x01, 0x80, 0xff} {
			damaged := bytes.Clone(data)
			damaged[i] ^= bits
			err := s.Restore(bytes.NewReader(damaged))
			var unknown *raftlog.UnknownFormatError
			// The header's formats come before the checksum: a damaged one may look
			// like a newer one. The node stops either way.
			if !errors.Is(err, ErrCorrupt) && !errors.As(err, &unknown) {
				t.Fatalf("byte %d of %d with %02x: %v", i, len(data), bits, err)
			}
		}
		if err := s.Restore(bytes.NewReader(data[:i])); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	if err := s.Restore(bytes.NewReader(append(bytes.Clone(data), 0))); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("one byte more: %v", err)
	}
	if !bytes.Equal(untouched, snapshotOf(t, s)) {
		t.Fatal("a damaged snapshot changed the state")
	}
}

// TestAWindowOfSeveralChunksSurvives: the first chunk is partly forgotten, the
// last one partly filled, and the chunks of a restored window begin elsewhere.
func TestAWindowOfSeveralChunksSurvives(t *testing.T) {
	l := newFormedLog(t)
	l.mustApplied(l.do(opSet("request-window", 3*requestChunkSize)))
	add := func(from, to int) {
		for i := from; i < to; i++ {
			l.mustApplied(l.do(keyed(opNext("users", 1), key(i, 1))))
		}
	}
	add(0, 4*requestChunkSize+100)
	for range 2 {
		l.state = restored(t, snapshotOf(t, l.state))
		counts := l.state.Counts()
		if counts.Requests != 3*requestChunkSize {
			t.Fatalf("%d are remembered", counts.Requests)
		}
		if _, hash := l.state.Hash(); hash != hashFromScratch(l.state.contents) {
			t.Fatal("wrong hash")
		}
		oldest := requestChunkSize + 100
		diff(t, int64(oldest+1), l.do(keyed(opNext("users", 1), key(oldest, 1))).GetIdentityNext().GetValues()[0].GetFirst())
		kept := 0
		share, _ := l.state.contents.requests.shares.Get(0, "")
		for _, chunk := range share.chunks {
			kept += len(chunk.entries)
		}
		if kept > 3*requestChunkSize*5/4 {
			t.Fatalf("%d are kept", kept)
		}
	}
	add(4*requestChunkSize+100, 8*requestChunkSize)
	if _, hash := l.state.Hash(); hash != hashFromScratch(l.state.contents) {
		t.Fatal("wrong hash")
	}
}

// FuzzRestore: whatever is read, the state is restored or stays as it is.
func FuzzRestore(f *testing.F) {
	data := snapshotOf(f, richLog(f).state)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Add(snapshotOf(f, New(Config{})))
	for i := 0; i < len(data); i += 97 {
		flipped := bytes.Clone(data)
		flipped[i] ^= 0x10
		f.Add(flipped)
	}
	f.Add(forge(&raftlogv1.SnapshotHeader{Format: 1, LogFormat: 1, FoldVersion: 1}, asRecord(&raftlogv1.Member{})))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := New(Config{})
		err := s.Restore(bytes.NewReader(data))
		var unknown *raftlog.UnknownFormatError
		if errors.Is(err, ErrCorrupt) || errors.As(err, &unknown) {
			if index, hash := s.Hash(); index != 0 || hash != 0 {
				t.Fatal("the state changed")
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, hash := s.Hash(); hash != hashFromScratch(s.contents) {
			t.Fatal("wrong hash")
		}
		snapshotOf(t, s)
	})
}

// FuzzRestoreRecords adds a right header, checksums and count to any bytes that are records, so
// that the readers of the records are reached.
func FuzzRestoreRecords(f *testing.F) {
	var all []byte
	err := richLog(f).state.Snapshot().EachRecord(func(m *raftlogv1.SnapshotRecord) error {
		encoded, err := proto.Marshal(m)
		all = protowire.AppendBytes(all, encoded)
		f.Add(protowire.AppendBytes(nil, encoded))
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(all)
	f.Fuzz(func(t *testing.T, body []byte) {
		var all []*raftlogv1.SnapshotRecord
		for len(body) > 0 {
			encoded, n := protowire.ConsumeBytes(body)
			m := &raftlogv1.SnapshotRecord{}
			if n < 0 || proto.Unmarshal(encoded, m) != nil {
				return
			}
			all, body = append(all, m), body[n:]
		}
		// The hash is that of no state at all, so nothing is ever put in place.
		s := New(Config{})
		header := &raftlogv1.SnapshotHeader{Format: 1, LogFormat: 1, FoldVersion: 1, ClusterId: testCluster}
		err := s.Restore(bytes.NewReader(forge(header, all...)))
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, dirfile.ErrOtherVersion) {
			t.Fatalf("got %v", err)
		}
		if _, hash := s.Hash(); hash != 0 {
			t.Fatal("the state changed")
		}
	})
}
