package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/store/wal"
	"github.com/idnode/idnode/internal/boltfile"
)

// LogReport is what VerifyLog found.
type LogReport struct {
	// First and Last are the indexes of the log's ends, zero if it has no entry, and
	// FirstTerm and LastTerm the terms of these entries.
	First, Last, FirstTerm, LastTerm uint64
	// LastAt is when the last entry was appended.
	LastAt time.Time
	// Term is the node's term.
	Term uint64
	// Snapshot is where the newest snapshot ends, and SnapshotTerm the term of that entry;
	// zero if there is none.
	Snapshot, SnapshotTerm uint64
	// Segments counts the log's files, and Torn is how many bytes of an interrupted write
	// the next start truncates.
	Segments, Torn int
}

// End returns the term and the index of the newest entry, or of the newest snapshot's end.
// Of two copies of a directory, or of two nodes, the one with the later term is further, and
// of one term the one with the greater index (raft paper 5.4.1).
func (r LogReport) End() (term, index uint64) {
	if r.Snapshot > r.Last {
		return r.SnapshotTerm, r.Snapshot
	}
	return r.LastTerm, r.Last
}

// LogEntry is an entry as a person looks at it.
type LogEntry struct {
	Index, Term uint64
	// Kind is command, noop, configuration or barrier.
	Kind       string
	Bytes      int
	AppendedAt time.Time
}

func describe(log *raft.Log) LogEntry {
	kind := strings.ToLower(strings.TrimPrefix(log.Type.String(), "Log"))
	return LogEntry{log.Index, log.Term, kind, len(log.Data), log.AppendedAt}
}

// VerifyLog reads the log in a data directory, and calls each, unless it is nil, with
// every entry. It checks what Open checks, and that terms never fall, and changes
// nothing. It returns ErrInUse, ErrMissing, ErrCorrupt, dirfile.ErrOtherVersion, wrapped, or the system's error.
func VerifyLog(dir string, each func(LogEntry) error) (report LogReport, err error) {
	path := filepath.Join(dir, fileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return report, fmt.Errorf("%w: %s", ErrMissing, path)
	}
	v := &verifier{dir: dir, each: each, report: &report}
	err = readFile(path, func(c contents) error {
		v.contents = c
		return v.run(path)
	})
	return report, err
}

// verifier reads one log. The open raft.db prevents a node from starting at the same
// time.
type verifier struct {
	contents
	dir    string
	each   func(LogEntry) error
	report *LogReport
}

func (v *verifier) run(path string) error {
	if err := boltfile.CheckMark(path, []byte(v.owner), v.newest); err != nil {
		return fmt.Errorf("%s: %w", fileName, classify(err))
	}
	if err := v.findSnapshot(); err != nil {
		return err
	}
	dir := filepath.Join(v.dir, logDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && v.values[string(keyLogMade)] == nil {
		return nil
	}
	return v.verifyLog(dir)
}

// findSnapshot uses the names of snapshots. It does not read their contents.
func (v *verifier) findSnapshot() error {
	snapshots := &Snapshots{dir: filepath.Join(v.dir, snapshotDir)}
	name, err := snapshots.newestName()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	v.report.Snapshot, v.report.SnapshotTerm = name.index, name.term
	if term := v.values[keyTerm]; len(term) == 8 {
		v.report.Term = binary.BigEndian.Uint64(term)
	}
	noted, ok := v.values[string(keySnapshot)]
	if ok && (len(noted) != 8 || binary.BigEndian.Uint64(noted) > name.index) {
		return fmt.Errorf("%w: a newer snapshot than the one up to %d was written", ErrCorrupt, name.index)
	}
	return nil
}

func (v *verifier) verifyLog(dir string) error {
	r, err := wal.OpenReader(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", logDir, err)
	}
	defer r.Close()
	v.report.Segments, v.report.Torn = r.Segments, r.Torn
	if err := boltfile.CheckMark(dir, []byte(v.owner), r.Position()); err != nil {
		return fmt.Errorf("%s: %w", logDir, classify(err))
	}
	first, last := r.Range()
	if err := checkReach(first, last, v.report.Snapshot); err != nil {
		return err
	}
	return v.verifyEntries(first, last, r.GetLog)
}

func (v *verifier) verifyEntries(first, last uint64, get func(uint64, *raft.Log) error) error {
	if last == 0 {
		return nil
	}
	v.report.First, v.report.Last = first, last
	for index := first; index <= last; index++ {
		var log raft.Log
		if err := get(index, &log); err != nil {
			return err
		}
		if log.Term < v.report.LastTerm {
			return fmt.Errorf("%w: log entry %d is of term %d, the one before it of %d", ErrCorrupt, index, log.Term, v.report.LastTerm)
		}
		if index == first {
			v.report.FirstTerm = log.Term
		}
		v.report.LastTerm, v.report.LastAt = log.Term, log.AppendedAt
		if v.each == nil {
			continue
		}
		if err := v.each(describe(&log)); err != nil {
			return err
		}
	}
	return nil
}
