package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftlogger"
	"github.com/idnode/idnode/internal/crc32c"
	"github.com/idnode/idnode/internal/dirfile"
	"github.com/idnode/idnode/internal/disklock"
	"github.com/idnode/idnode/internal/syncdir"
)

const (
	// These five names are the library's.
	snapshotDir = "snapshots"
	testFile    = "permTest"
	metaFile    = "meta.json"
	stateFile   = "state.bin"
	draftSuffix = ".tmp"

	snapshotMagic       = "idnsnap\x01"
	snapshotHeaderBytes = len(snapshotMagic) + 4
)

// Snapshots is a raft.SnapshotStore on the library's file snapshots, with two changes.
// The library checks the state of a snapshot, but not its description: a flipped digit of
// the index in the JSON file makes it skip or repeat entries. So each state begins with a
// checksum of the description, which Raft neither sees nor sends. And where the library
// falls back to an older snapshot when the newest is damaged, though the log may have
// been cut off above it (hashicorp/raft issue 85), this store stops: only the newest
// snapshot can be opened.
//
// It is safe for concurrent use.
type Snapshots struct {
	files *raft.FileSnapshotStore
	dir   string
	guard *guard

	// recording is held while record writes a finished snapshot's index into raft.db.
	// recorded is that of the newest one. checkAgainst sets both.
	recording disklock.Mutex
	recorded  uint64
	// end is the last log index in the newest snapshot; 0 without one.
	end    atomic.Uint64
	record func(index uint64) error
}

func openSnapshots(cfg Config, guard *guard) (*Snapshots, error) {
	dir := filepath.Join(cfg.Dir, snapshotDir)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	if err := removeDrafts(dir, cfg.Logger); err != nil {
		return nil, err
	}
	files, err := raft.NewFileSnapshotStoreWithLogger(cfg.Dir, retainedSnapshots, raftlogger.New(cfg.Logger))
	if err != nil {
		return nil, err
	}
	// The library writes this file to test its permissions, and removes it. Where it is there
	// already, the next start needs no inode.
	_ = os.WriteFile(filepath.Join(dir, testFile), nil, fileMode)
	s := &Snapshots{files: files, dir: dir, guard: guard, recording: disklock.New(), record: func(uint64) error { return nil }}
	meta, err := s.newest()
	if err != nil {
		return nil, err
	}
	if meta != nil {
		s.end.Store(meta.Index)
	}
	return s, nil
}

// removeDrafts removes unfinished snapshots after a crash; the library only warns of
// them, each time.
func removeDrafts(dir string, logger *slog.Logger) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), draftSuffix) {
			continue
		}
		logger.Info("removing an unfinished snapshot", "name", e.Name())
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (s *Snapshots) Create(version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration,
	configurationIndex uint64, trans raft.Transport,
) (raft.SnapshotSink, error) {
	if err := s.guard.err(); err != nil {
		return nil, err
	}
	sink, err := s.files.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	header := snapshotHeader(&raft.SnapshotMeta{
		Version: version, ID: sink.ID(), Index: index, Term: term,
		Configuration: configuration, ConfigurationIndex: configurationIndex,
	})
	if _, err := sink.Write(header); err != nil {
		return nil, errors.Join(err, sink.Cancel())
	}
	// The library syncs the files and the parent directory, but not the directory with
	// the files' names.
	if err := syncdir.Sync(filepath.Join(s.dir, sink.ID()+draftSuffix)); err != nil {
		return nil, errors.Join(err, sink.Cancel())
	}
	return &recordingSink{SnapshotSink: sink, snapshots: s, end: snapshotName{term: term, index: index}}, nil
}

// checkAgainst fails if the newest snapshot is older than one recorded in raft.db, and records
// every later one there.
func (s *Snapshots) checkAgainst(store *Store) (err error) {
	s.record = func(index uint64) error { return store.SetUint64(keySnapshot, index) }
	if s.recorded, err = store.number(keySnapshot); err != nil {
		return err
	}
	if end := s.end.Load(); end < s.recorded {
		return fmt.Errorf("%w: the newest snapshot reaches up to %d, and one up to %d was written", ErrCorrupt, end, s.recorded)
	}
	return s.finished()
}

func (s *Snapshots) finished() error {
	s.recording.Lock()
	defer s.recording.Unlock()
	newest, err := s.newestName()
	if err != nil {
		return err
	}
	s.end.Store(newest.index)
	return s.recordNewest(newest.index)
}

// recordBeforeWrite records a snapshot before it is on disk, if it will be the newest although it
// ends at a lower index: a recovered node takes over the state of another survivor. After
// a crash in between, raft.db demands less than there is.
func (s *Snapshots) recordBeforeWrite(end snapshotName) error {
	s.recording.Lock()
	defer s.recording.Unlock()
	newest, err := s.newestName()
	if err != nil || end.term <= newest.term || end.index >= s.recorded {
		return err
	}
	return s.recordNewest(end.index)
}

func (s *Snapshots) recordNewest(index uint64) error {
	if index == s.recorded {
		return nil
	}
	if err := s.record(index); err != nil {
		return err
	}
	s.recorded = index
	return nil
}

// recordingSink is a snapshot being written, which is recorded in raft.db when it is finished:
// the library's own sink knows no file but its own.
type recordingSink struct {
	raft.SnapshotSink
	snapshots *Snapshots
	end       snapshotName
	cancelled bool
}

func (k *recordingSink) Cancel() error {
	k.cancelled = true
	return k.SnapshotSink.Cancel()
}

func (k *recordingSink) Close() error {
	if k.cancelled {
		return k.SnapshotSink.Close()
	}
	if err := k.snapshots.recordBeforeWrite(k.end); err != nil {
		return errors.Join(err, k.Cancel())
	}
	if err := k.SnapshotSink.Close(); err != nil {
		return err
	}
	return k.snapshots.finished()
}

// List implements raft.SnapshotStore: it returns the newest snapshot, or nothing
// if there is none. A newest snapshot whose description is damaged is ErrCorrupt.
func (s *Snapshots) List() ([]*raft.SnapshotMeta, error) {
	if err := s.guard.err(); err != nil {
		return nil, err
	}
	meta, err := s.newest()
	if errors.Is(err, ErrCorrupt) {
		return nil, s.guard.fail(err)
	}
	if meta == nil || err != nil {
		return nil, err
	}
	meta.Size -= int64(snapshotHeaderBytes)
	return []*raft.SnapshotMeta{meta}, nil
}

// Open implements raft.SnapshotStore. It reads the whole snapshot once to check
// it, and fails for any but the newest.
func (s *Snapshots) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	if err := s.guard.err(); err != nil {
		return nil, nil, err
	}
	newest, err := s.newestName()
	if err != nil {
		return nil, nil, err
	}
	if newest.id != id {
		return nil, nil, fmt.Errorf("snapshot %s is not the newest, which is %q", id, newest.id)
	}
	meta, state, err := s.open(newest)
	if errors.Is(err, ErrCorrupt) || errors.Is(err, dirfile.ErrOtherVersion) {
		return nil, nil, s.guard.fail(err)
	}
	return meta, state, err
}

func (s *Snapshots) open(name snapshotName) (*raft.SnapshotMeta, io.ReadCloser, error) {
	meta, state, err := s.files.Open(name.id)
	if err != nil {
		return nil, nil, damagedSnapshot(name, err)
	}
	header := make([]byte, snapshotHeaderBytes)
	_, err = io.ReadFull(state, header)
	if err == nil {
		n := len(snapshotMagic)
		intact := string(header[n:]) == string(snapshotHeader(meta)[n:]) && name.fits(meta)
		err = dirfile.Magic(header, snapshotMagic, intact, errors.New("its description does not belong to its state"))
	}
	if err != nil {
		return nil, nil, errors.Join(damagedSnapshot(name, err), state.Close())
	}
	meta.Size -= int64(snapshotHeaderBytes)
	return meta, state, nil
}

// newest returns the description of the newest snapshot as the library has it,
// nil if there is no snapshot. The names decide which one is newest: a damaged
// description must not hide its snapshot.
func (s *Snapshots) newest() (*raft.SnapshotMeta, error) {
	name, err := s.newestName()
	if err != nil || name.id == "" {
		return nil, err
	}
	metas, err := s.files.List()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(metas, func(m *raft.SnapshotMeta) bool { return m.ID == name.id })
	if at < 0 {
		// The library leaves out what it cannot read.
		if _, err := os.ReadFile(filepath.Join(s.dir, name.id, metaFile)); err != nil {
			return nil, damagedSnapshot(name, err)
		}
	}
	if at < 0 || !name.fits(metas[at]) {
		return nil, fmt.Errorf("%w: description of snapshot %s", ErrCorrupt, name.id)
	}
	state, err := os.Stat(filepath.Join(s.dir, name.id, stateFile))
	if err != nil {
		return nil, damagedSnapshot(name, err)
	}
	if state.Size() != metas[at].Size || state.Size() < int64(snapshotHeaderBytes) {
		return nil, fmt.Errorf("%w: size of snapshot %s", ErrCorrupt, name.id)
	}
	return metas[at], nil
}

// damagedSnapshot reports a snapshot as damaged, unless a newer program wrote it, or the system
// could not read it (as with too many open files).
func damagedSnapshot(name snapshotName, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if errors.Is(err, dirfile.ErrOtherVersion) {
		return fmt.Errorf("snapshot %s: %w", name.id, err)
	}
	return fmt.Errorf("%w: snapshot %s: %w", ErrCorrupt, name.id, err)
}

func (s *Snapshots) newestName() (newest snapshotName, err error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return newest, err
	}
	for _, e := range entries {
		// A name that begins with a dot is a later program's.
		if !e.IsDir() || strings.HasSuffix(e.Name(), draftSuffix) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		name, err := parseSnapshotName(e.Name())
		if err != nil {
			return newest, err
		}
		if newest.before(name) {
			newest = name
		}
	}
	return newest, nil
}

type snapshotName struct {
	id                 string
	term, index, milli uint64
}

func parseSnapshotName(id string) (snapshotName, error) {
	name := snapshotName{id: id}
	_, err := fmt.Sscanf(id, "%d-%d-%d", &name.term, &name.index, &name.milli)
	if err != nil || id != fmt.Sprintf("%d-%d-%d", name.term, name.index, name.milli) {
		return snapshotName{}, fmt.Errorf("%w: %q is no name of a snapshot", ErrCorrupt, id)
	}
	return name, nil
}

// before orders names as the library does.
func (n snapshotName) before(o snapshotName) bool {
	return slices.Compare([]uint64{n.term, n.index, n.milli}, []uint64{o.term, o.index, o.milli}) < 0 || n.id == ""
}

func (n snapshotName) fits(meta *raft.SnapshotMeta) bool {
	return meta.ID == n.id && meta.Term == n.term && meta.Index == n.index
}

// snapshotHeader is what stands before the state: a magic and a CRC-32C of
// everything in the description that Raft uses, except the size and the state's
// checksum, which the library checks by reading.
func snapshotHeader(meta *raft.SnapshotMeta) []byte {
	b := make([]byte, 0, 512)
	for _, n := range []uint64{uint64(meta.Version), meta.Index, meta.Term, meta.ConfigurationIndex} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = append(b, meta.ID...)
	b = append(b, raft.EncodeConfiguration(meta.Configuration)...)
	return binary.BigEndian.AppendUint32([]byte(snapshotMagic), crc32c.Sum(b))
}
