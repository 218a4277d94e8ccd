package cluster

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/idnode/idnode/cluster/member"
)

// openFiles opens a data directory as a node does.
func openFiles(t *testing.T, dir string) (*files, *member.Record, error) {
	t.Helper()
	f := &files{dir: dir}
	record, err := f.LoadRecord()
	if err != nil {
		return nil, nil, err
	}
	s, err := f.OpenStore(StoreOptions{
		NodeID: record.ID.String(), StallLimit: time.Minute, Fatal: func(error) {}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { _ = s.Close() })
	return f, record, nil
}

// TestOlderRecordIsNoticed: an older copy of node.json alone may name members that
// were removed since, or a node that has no cluster yet.
func TestOlderRecordIsNoticed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, member.FileName)
	f, record, err := openFiles(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	older, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"A", "B"} {
		record.Tag = tag
		if err := f.SaveRecord(record); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.store.Close(); err != nil {
		t.Fatal(err)
	}
	f, record, err = openFiles(t, dir)
	if err != nil || record.Tag != "B" {
		t.Fatalf("the newest record: %+v, %v", record, err)
	}
	// A crash between the two writes leaves a record that is newer than known.
	record.Tag, record.Revision = "C", record.Revision+1
	if err := errors.Join(record.Save(dir), f.store.Close()); err != nil {
		t.Fatal(err)
	}
	f, _, err = openFiles(t, dir)
	if err != nil {
		t.Fatalf("after a crash between the record and the store: %v", err)
	}
	if err := errors.Join(f.store.Close(), os.WriteFile(path, older, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openFiles(t, dir); !errors.Is(err, member.ErrCorrupt) {
		t.Errorf("an older record: %v", err)
	}
}
