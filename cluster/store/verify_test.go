package store

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

// contentOf reads all files of a directory.
func contentOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	must(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		files[path] = string(content)
		return err
	}))
	return files
}

// TestVerifyLogReadsEverythingAndChangesNothing while no node runs there.
func TestVerifyLogReadsEverythingAndChangesNothing(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t.TempDir(), newFatals())
	s := mustOpen(t, cfg)
	must(t, s.StoreLogs(entries(1, 300)))
	must(t, s.SetUint64([]byte("CurrentTerm"), 40))
	writeSnapshot(t, s.snapshots, 3, 60, "state")
	must(t, s.DeleteRange(1, 50))
	if _, err := VerifyLog(cfg.Dir, nil); !errors.Is(err, ErrInUse) {
		t.Errorf("of a running node: %v", err)
	}
	mustClose(t, s)
	before := contentOf(t, cfg.Dir)
	next := uint64(51)
	report, err := VerifyLog(cfg.Dir, func(log LogEntry) error {
		if diff := cmp.Diff(describe(entry(next)), log); diff != "" {
			t.Errorf("entry %d (-want +got):\n%s", next, diff)
		}
		next++
		return nil
	})
	must(t, err)
	want := LogReport{
		First: 51, Last: 300, FirstTerm: 6, LastTerm: 31, LastAt: entry(300).AppendedAt.UTC(), Term: 40, Snapshot: 60, SnapshotTerm: 3,
		Segments: report.Segments,
	}
	report.LastAt = report.LastAt.UTC()
	if term, index := report.End(); term != 31 || index != 300 {
		t.Errorf("it ends at %d of term %d", index, term)
	}
	if report != want || next != 301 || report.Segments < 2 {
		t.Errorf("%+v up to %d, want %+v", report, next, want)
	}
	if diff := cmp.Diff(before, contentOf(t, cfg.Dir)); diff != "" {
		t.Error("something was changed")
	}
}

// TestVerifyLogFindsDamage, as a start of the node does, and what only it looks at.
func TestVerifyLogFindsDamage(t *testing.T) {
	for what, damage := range map[string]func(t *testing.T, dir string){
		"no raft.db":    func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, fileName))) },
		"no snapshot":   func(t *testing.T, dir string) { must(t, os.RemoveAll(filepath.Join(dir, snapshotDir))) },
		"a flipped bit": flipEntry,
	} {
		t.Run(what, func(t *testing.T) {
			cfg := testConfig(t.TempDir(), newFatals())
			s := mustOpen(t, cfg)
			must(t, s.StoreLogs(entries(1, 30)))
			writeSnapshot(t, s.snapshots, 3, 10, "state")
			mustClose(t, s)
			damage(t, cfg.Dir)
			if _, err := VerifyLog(cfg.Dir, nil); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrMissing) {
				t.Errorf("%v", err)
			}
		})
	}
}

// flipEntry changes a bit of the entry 20.
func flipEntry(t *testing.T, dir string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, logDir, "*.log"))
	must(t, err)
	path := slices.Max(segments)
	content, err := os.ReadFile(path)
	must(t, err)
	content[bytes.Index(content, []byte("data of 20"))] ^= 1
	must(t, os.WriteFile(path, content, fileMode))
}

// TestVerifyLogFindsATermThatFalls: the library never appends one.
func TestVerifyLogFindsATermThatFalls(t *testing.T) {
	cfg := testConfig(t.TempDir(), newFatals())
	s := mustOpen(t, cfg)
	must(t, s.StoreLogs([]*raft.Log{{Index: 1, Term: 2}, {Index: 2, Term: 1}}))
	mustClose(t, s)
	if _, err := VerifyLog(cfg.Dir, nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("%v", err)
	}
}
