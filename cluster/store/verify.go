package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"github.com/idnode/idnode/cluster/store/wal"
	"github.com/idnode/idnode/internal/boltfile"
)

// LogReport is what VerifyLog found.
type LogReport struct {
	Kind LogKind
	// First and Last are the indexes of the log's ends, zero if it has no entry, and
	// FirstTerm and LastTerm the terms of these entries.
	First, Last, FirstTerm, LastTerm uint64
	// Snapshot is where the newest snapshot ends, zero if there is none.
	Snapshot uint64
	// Segments counts the files of a LogWAL, and Torn is how many bytes of an interrupted
	// write the next start truncates.
	Segments, Torn int
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
// nothing. It returns ErrInUse, ErrMissing, ErrCorrupt, wrapped, or the system's error.
func VerifyLog(dir string, each func(LogEntry) error) (report LogReport, err error) {
	path := filepath.Join(dir, fileName)
	if err := notEmpty(path); errors.Is(err, fs.ErrNotExist) {
		return report, fmt.Errorf("%w: %s", ErrMissing, path)
	} else if err != nil {
		return report, err
	}
	bolt, err := newBolt(raftboltdb.Options{Path: path, BoltOptions: &bbolt.Options{ReadOnly: true, Timeout: lockTimeout}})
	if err != nil {
		return report, fmt.Errorf("%s: %w", fileName, err)
	}
	v := &verifier{dir: dir, bolt: bolt, each: each, report: &report}
	err = boltfile.Trap(path, ErrCorrupt, v.run)
	return report, errors.Join(err, bolt.Close())
}

// verifier reads one log. The open raft.db prevents a node from starting at the same
// time.
type verifier struct {
	dir    string
	bolt   boltStore
	stable *checkedStable
	owner  []byte
	each   func(LogEntry) error
	report *LogReport
}

func (v *verifier) run() error {
	if err := v.openStable(); err != nil {
		return fmt.Errorf("%s: %w", fileName, err)
	}
	if err := v.findSnapshot(); err != nil {
		return err
	}
	kind, err := v.stable.Get(keyLogKind)
	if errors.Is(err, errNoKey) {
		return v.verifyBolt()
	}
	if err != nil {
		return err
	}
	v.report.Kind = LogWAL
	dir := filepath.Join(v.dir, logDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) && string(kind) == kindNew {
		return nil
	}
	return v.verifyWAL(dir)
}

// openStable checks raft.db, and reads its owner.
func (v *verifier) openStable() error {
	path := filepath.Join(v.dir, fileName)
	newest, err := boltfile.Check(path)
	if err != nil {
		return classify(err)
	}
	var keys map[string]bool
	err = v.bolt.db.View(func(tx *bbolt.Tx) (err error) {
		keys, err = inspectTx(tx)
		return err
	})
	if err != nil {
		return err
	}
	guard := newGuard(Watchdog{Fatal: func(error) {}}, slog.New(slog.DiscardHandler))
	guard.path = path
	v.stable = newCheckedStable(v.bolt, guard, keys)
	if v.owner, err = v.stable.Get(keyNodeID); err != nil {
		return fmt.Errorf("%w: it does not say whose it is", ErrCorrupt)
	}
	return classify(boltfile.CheckMark(path, v.owner, newest))
}

// findSnapshot uses the names of snapshots. It does not read their contents.
func (v *verifier) findSnapshot() error {
	snapshots := &Snapshots{dir: filepath.Join(v.dir, snapshotDir)}
	name, err := snapshots.newestName()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	v.report.Snapshot = name.index
	noted, err := v.stable.Get(keySnapshot)
	if errors.Is(err, errNoKey) {
		return nil
	}
	if err == nil && (len(noted) != 8 || binary.BigEndian.Uint64(noted) > name.index) {
		err = fmt.Errorf("%w: a newer snapshot than the one up to %d was written", ErrCorrupt, name.index)
	}
	return err
}

func (v *verifier) verifyBolt() error {
	v.report.Kind = LogBolt
	l := newCheckedLog(v.bolt, v.stable.guard)
	held, _, err := l.scan(v.report.Snapshot)
	if err != nil {
		return err
	}
	return v.verifyEntries(held.first, held.last, l.get)
}

func (v *verifier) verifyWAL(dir string) error {
	r, err := wal.OpenReader(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", logDir, err)
	}
	defer r.Close()
	v.report.Segments, v.report.Torn = r.Segments(), r.Torn()
	if err := boltfile.CheckMark(dir, v.owner, r.Position()); err != nil {
		return fmt.Errorf("%s: %w", logDir, classify(err))
	}
	first, last := r.Range()
	if last > 0 {
		if err := checkReach(indexRange{first: first, last: last}, v.report.Snapshot); err != nil {
			return err
		}
	}
	return v.verifyEntries(first, last, r.GetLog)
}

// verifyEntries reads the entries in their order.
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
		v.report.LastTerm = log.Term
		if v.each == nil {
			continue
		}
		if err := v.each(describe(&log)); err != nil {
			return err
		}
	}
	return nil
}
