package store

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/dirfile"
)

var snapshotServers = raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: nodeA, Address: nodeA}}}

func openTestSnapshots(t *testing.T, cfg Config) *Snapshots {
	t.Helper()
	s, err := openSnapshots(cfg, newGuard(cfg.Watchdog, cfg.Logger))
	must(t, err)
	return s
}

// takeSnapshot writes a snapshot as the library would, and returns its id.
func takeSnapshot(t *testing.T, cfg Config, term, index uint64, state string) string {
	t.Helper()
	return writeSnapshot(t, openTestSnapshots(t, cfg), term, index, state)
}

func writeSnapshot(t *testing.T, s *Snapshots, term, index uint64, state string) string {
	t.Helper()
	_, transport := raft.NewInmemTransport("")
	sink, err := s.Create(1, index, term, snapshotServers, 2, transport)
	must(t, err)
	n, err := io.WriteString(sink, state)
	if n != len(state) || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	must(t, sink.Close())
	return sink.ID()
}

// TestALaterProgramsFolderStays: a name that begins with a dot is no snapshot's.
func TestALaterProgramsFolderStays(t *testing.T) {
	s := openTestSnapshots(t, testConfig(t.TempDir(), newFatals()))
	later := filepath.Join(s.dir, ".later")
	must(t, os.Mkdir(later, dirMode))
	id := writeSnapshot(t, s, 2, 50, "state")
	metas, err := s.List()
	if _, gone := os.Stat(later); err != nil || len(metas) != 1 || metas[0].ID != id || gone != nil {
		t.Errorf("%v, %v, %v", metas, err, gone)
	}
}

// TestANewerSnapshotIsNoDamage: the node ends, and an operator who learned of damage would empty the directory.
func TestANewerSnapshotIsNoDamage(t *testing.T) {
	f := newFatals()
	s := openTestSnapshots(t, testConfig(t.TempDir(), f))
	_, transport := raft.NewInmemTransport("")
	sink, err := s.files.Create(1, 50, 2, snapshotServers, 2, transport)
	must(t, err)
	_, err = io.WriteString(sink, "idnsnap\x02 of another form")
	must(t, errors.Join(err, sink.Close()))
	if _, _, err := s.Open(sink.ID()); !errors.Is(err, dirfile.ErrOtherVersion) || errors.Is(err, ErrCorrupt) {
		t.Errorf("%v", err)
	}
	if errs := f.all(); len(errs) != 1 || !errors.Is(errs[0], dirfile.ErrOtherVersion) {
		t.Errorf("the node ended with %v", errs)
	}
}

func TestSnapshotIsReadAsWritten(t *testing.T) {
	s := openTestSnapshots(t, testConfig(t.TempDir(), newFatals()))
	if metas, err := s.List(); len(metas) != 0 || err != nil {
		t.Fatalf("empty store lists %v, %v", metas, err)
	}
	writeSnapshot(t, s, 2, 50, "older")
	id := writeSnapshot(t, s, 2, 90, "newer")
	metas, err := s.List()
	if err != nil || len(metas) != 1 {
		t.Fatalf("%v, %v", metas, err)
	}
	meta, state, err := s.Open(id)
	must(t, err)
	defer state.Close()
	content, err := io.ReadAll(state)
	must(t, err)
	if string(content) != "newer" || meta.Size != 5 {
		t.Errorf("state is %q, of %d bytes", content, meta.Size)
	}
	if diff := cmp.Diff(metas[0], meta); diff != "" {
		t.Errorf("listed and opened differ:\n%s", diff)
	}
	if diff := cmp.Diff(snapshotServers, meta.Configuration); diff != "" || meta.Index != 90 || meta.Term != 2 ||
		meta.ConfigurationIndex != 2 {
		t.Errorf("description is %+v", meta)
	}
}

// TestFlippedByteInASnapshot flips each byte of the newest snapshot's files. No
// flip may lead to the older snapshot, nor change what the newest one says.
func TestFlippedByteInASnapshot(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	writer := openTestSnapshots(t, cfg)
	writeSnapshot(t, writer, 2, 50, "older")
	id := writeSnapshot(t, writer, 2, 90, "the state")
	want, state, err := writer.Open(id)
	must(t, err)
	must(t, state.Close())
	for _, file := range []string{"meta.json", "state.bin"} {
		path := filepath.Join(cfg.Dir, snapshotDir, id, file)
		good, err := os.ReadFile(path)
		must(t, err)
		for i := range good {
			bad := append([]byte(nil), good...)
			bad[i] ^= 1 << (i % 7)
			must(t, os.WriteFile(path, bad, 0o600))
			if got, err := restoreLikeTheLibrary(cfg); err == nil && (got.state != "the state" || !cmp.Equal(want, got.meta, ignorePeers)) {
				t.Errorf("flip in byte %d of %s got through: %+v", i, file, got.meta)
			} else if err != nil && !errors.Is(err, ErrCorrupt) {
				t.Errorf("flip in byte %d of %s: %v", i, file, err)
			}
		}
		must(t, os.WriteFile(path, good, 0o600))
	}
}

// Peers is what protocol versions before 3 used; the library writes it and
// reads it no more.
var ignorePeers = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Peers" }, cmp.Ignore())

type restored struct {
	meta  *raft.SnapshotMeta
	state string
}

// restoreLikeTheLibrary tries the listed snapshots in turn until one opens.
func restoreLikeTheLibrary(cfg Config) (got restored, err error) {
	cfg.Watchdog.Fatal = func(error) {}
	s, err := openSnapshots(cfg, newGuard(cfg.Watchdog, cfg.Logger))
	if err != nil {
		return got, err
	}
	metas, err := s.List()
	if err != nil {
		return got, err
	}
	for _, m := range metas {
		meta, state, openErr := s.Open(m.ID)
		if err = openErr; err != nil {
			continue
		}
		defer state.Close()
		content, err := io.ReadAll(state)
		return restored{meta, string(content)}, err
	}
	return got, err
}

func TestOlderSnapshotCannotBeOpened(t *testing.T) {
	f := newFatals()
	s := openTestSnapshots(t, testConfig(t.TempDir(), f))
	older := writeSnapshot(t, s, 2, 50, "older")
	writeSnapshot(t, s, 2, 90, "newer")
	if _, _, err := s.Open(older); err == nil {
		t.Error("the older snapshot was opened")
	}
	if len(f.all()) > 0 {
		t.Errorf("asking for it is no damage: %v", f.all())
	}
}

// TestASnapshotOfAHigherTermEndsLower: a recovered node takes over the state of
// another survivor. A crash right before the snapshot is on disk leaves a directory
// that opens, and so does one right after.
func TestASnapshotOfAHigherTermEndsLower(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	s, err := Open(cfg)
	must(t, err)
	writeSnapshot(t, s.snapshots, 4, 100, "own")
	must(t, s.snapshots.recordBeforeWrite(snapshotName{term: 5, index: 98}))
	must(t, s.Close())
	s, err = Open(cfg)
	must(t, err)
	if end := s.snapshots.end.Load(); end != 100 {
		t.Errorf("before the other's snapshot: it ends at %d", end)
	}
	id := writeSnapshot(t, s.snapshots, 5, 98, "the other's")
	if metas, err := s.Snapshots().List(); err != nil || len(metas) != 1 || metas[0].ID != id {
		t.Errorf("the newest is %v, %v", metas, err)
	}
	must(t, s.StoreLog(&raft.Log{Index: 99, Term: 6}))
	must(t, s.Close())
	s, err = Open(cfg)
	must(t, err)
	if noted, err := s.number(keySnapshot); err != nil || noted != 98 {
		t.Errorf("raft.db knows of %d, %v", noted, err)
	}
	must(t, s.Close())
}

func TestDamagedSnapshotIsFatalOnceRunning(t *testing.T) {
	f := newFatals()
	cfg := testConfig(t.TempDir(), f)
	s := openTestSnapshots(t, cfg)
	id := writeSnapshot(t, s, 2, 90, "newer")
	must(t, os.Remove(filepath.Join(cfg.Dir, snapshotDir, id, stateFile)))
	if _, _, err := s.Open(id); !errors.Is(err, ErrCorrupt) {
		t.Errorf("Open: %v", err)
	}
	if errs := f.all(); len(errs) != 1 || !errors.Is(errs[0], ErrCorrupt) {
		t.Errorf("Fatal was called with %v", errs)
	}
	if _, err := s.List(); !errors.Is(err, ErrCorrupt) {
		t.Errorf("List afterwards: %v", err)
	}
}

func TestUnfinishedSnapshotIsRemoved(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	s := openTestSnapshots(t, cfg)
	_, transport := raft.NewInmemTransport("")
	sink, err := s.Create(1, 9, 1, snapshotServers, 1, transport)
	must(t, err)
	openTestSnapshots(t, cfg)
	if left, _ := filepath.Glob(filepath.Join(cfg.Dir, snapshotDir, "*-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	_ = sink.Cancel()
}

func TestSnapshotsWithoutLogAreALostLog(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	takeSnapshot(t, cfg, 2, 90, "state")
	if _, err := Open(cfg); !errors.Is(err, ErrMissing) {
		t.Errorf("Open: %v", err)
	}
}
