package fsm

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/test/compat"
)

// TestEntriesKept plays the entries that a release made of the transcripts and of the encodings in op/testdata, in
// which every operation occurs. The state has the release's hash after each, and the release's snapshot has the hash
// of the last. One that begins with the release's snapshot of half of them has the same hashes from there on.
func TestEntriesKept(t *testing.T) {
	if compat.Golden() {
		writeEntries(t)
	}
	for _, name := range compat.Files(t, "entries") {
		played(t, name)
	}
}

// writeEntries writes what is played from then on.
func writeEntries(t *testing.T) {
	t.Helper()
	occur := make(map[protoreflect.FullName]bool)
	logs := map[string][]testEntry{"encodings": encodings(t)}
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) { logs[filepath.Base(path)] = transcribed(t, path) })
	for name, log := range logs {
		entries, half, snapshot := recorded(t, log)
		compat.File(t, compat.Equal, "entries/"+name, entries)
		compat.File(t, compat.Data, "halves/"+name, half)
		compat.File(t, compat.Data, "snapshots/"+name, snapshot)
		for _, e := range log {
			operationsIn(t, e.data, occur)
		}
	}
	all := (&raftlogv1.Operation{}).ProtoReflect().Descriptor().Oneofs().ByName("op").Fields()
	for i := range all.Len() {
		if name := all.Get(i).FullName(); !occur[name] {
			t.Errorf("no entry has %s", name)
		}
	}
}

// later is above every format: a transcript raises it.
var later = Config{MaxFormat: 99}

// played compares the states that the entries of one file make, from the first on and from the snapshot of the first
// half, and its snapshot of all.
func played(t *testing.T, name string) {
	t.Helper()
	states := map[string]*State{"no state": New(later), "half": kept(t, "halves/"+name)}
	middle, _ := states["half"].Hash()
	for line := range strings.Lines(string(compat.File(t, compat.Equal, "entries/"+name, nil))) {
		var index, want uint64
		var entry []byte
		if _, err := fmt.Sscanf(line, "%d %x %x", &index, &want, &entry); err != nil {
			t.Fatal(err)
		}
		for from, state := range states {
			if from == "half" && index <= middle {
				continue
			}
			if _, err := state.Apply(index, entry); err != nil {
				t.Fatalf("%q would be broken: entry %d of %s from %s on: %v", compat.Data, index, name, from, err)
			}
			if _, hash := state.Hash(); hash != want {
				t.Fatalf("%q would be broken: entry %d of %s from %s on makes another state", compat.Equal, index, name, from)
			}
		}
	}
	index, hash := states["no state"].Hash()
	if i, _ := states["half"].Hash(); i != index || middle == index {
		t.Errorf("%s goes to %d, and from its half of %d to %d", name, index, middle, i)
	}
	if i, h := kept(t, "snapshots/"+name).Hash(); i != index || h != hash {
		t.Errorf("%q would be broken: the snapshot of %s is another state", compat.Equal, name)
	}
}

// kept is the state of a snapshot of the release.
func kept(t *testing.T, file string) *State {
	t.Helper()
	state := New(later)
	if err := state.Restore(bytes.NewReader(compat.File(t, compat.Data, file, nil))); err != nil {
		t.Fatalf("%q would be broken: %s: %v", compat.Data, file, err)
	}
	return state
}

// transcribed are a transcript's entries up to where it recovers from a disaster.
func transcribed(t *testing.T, path string) []testEntry {
	t.Helper()
	p := &transcript{testLog: newLog(t), sessions: map[string]uint64{}}
	recovered := false
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		p.t = t
		if recovered = recovered || d.Cmd == "recover"; recovered {
			return d.Expected
		}
		return p.directive(d)
	})
	return p.entries
}

// encodings are the operations of op/testdata, one after the other in a cluster.
func encodings(t *testing.T) []testEntry {
	t.Helper()
	text, err := os.ReadFile("op/testdata/operations")
	if err != nil {
		t.Fatal(err)
	}
	l := newFormedLog(t)
	for line := range strings.Lines(string(text)) {
		_, digits, _ := strings.Cut(strings.TrimSpace(line), ": ")
		operation, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		l.raw(operation)
	}
	return l.entries
}

// recorded has index, hash and bytes of each entry in a line, and the snapshots of the states after half of them and
// after all.
func recorded(t *testing.T, log []testEntry) (entries, half, all []byte) {
	t.Helper()
	state := New(later)
	var lines bytes.Buffer
	for i, e := range log {
		if i == len(log)/2 {
			half = snapshotOf(t, state)
		}
		if _, err := state.Apply(e.index, e.data); err != nil {
			t.Fatal(err)
		}
		_, hash := state.Hash()
		fmt.Fprintf(&lines, "%d %016x %s\n", e.index, hash, hex.EncodeToString(e.data))
	}
	return lines.Bytes(), half, snapshotOf(t, state)
}

// operationsIn notes which operations an entry has.
func operationsIn(t *testing.T, data []byte, occur map[protoreflect.FullName]bool) {
	t.Helper()
	entry, err := raftlog.DecodeEntry(data, later.MaxFormat)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range entry.Groups {
		for _, encoded := range group.Operations {
			var operation raftlogv1.Operation
			if err := proto.Unmarshal(encoded, &operation); err != nil {
				continue // A transcript has some that are refused.
			}
			m := operation.ProtoReflect()
			if field := m.WhichOneof(m.Descriptor().Oneofs().ByName("op")); field != nil {
				occur[field.FullName()] = true
			}
		}
	}
}
