package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/cluster/store"
)

// TestAuditVerify tells a sound log from one that was changed or cut.
func TestAuditVerify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	for range 3 {
		log, err := audit.Open(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = log.Write(t.Context(), audit.Record{Event: audit.EventRoles, Outcome: audit.OutcomeDone, Principal: "ops"})
		if err := errors.Join(err, log.Close()); err != nil {
			t.Fatal(err)
		}
	}
	got := command(t, "audit", "verify", path)
	_, head, _ := strings.Cut(got.stdout, "head ")
	head = strings.TrimSpace(head)
	if got.code != exitOK || !strings.HasPrefix(got.stdout, "3 lines") || len(head) != 64 {
		t.Fatalf("%+v", got)
	}
	if got := command(t, "audit", "verify", path, "--head", head); got.code != exitOK {
		t.Errorf("%+v", got)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := command(t, "audit", "verify", path); got.code != exitFailed || !strings.Contains(got.stderr, "there is no line") {
		t.Errorf("an empty file: %+v", got)
	}
	for name, text := range map[string]string{"cut": lines[0] + lines[1], "changed": strings.Replace(string(data), `"ops"`, `"oops"`, 1)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := command(t, "audit", "verify", path, "--head", head); got.code != exitFailed || !strings.Contains(got.stderr, "broken") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestLogVerify tells a sound log from one that is in use, damaged, or not there.
func TestLogVerify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := store.Open(store.Config{
		Dir: dir, NodeID: "n", Logger: slog.New(slog.DiscardHandler),
		Watchdog: store.Watchdog{Limit: time.Minute, Fatal: func(err error) { t.Error(err) }},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(3) {
		if err := s.StoreLog(&raft.Log{Index: i + 1, Term: 2 + i, Data: []byte("something")}); err != nil {
			t.Fatal(err)
		}
	}
	verify := func(code int, stdout, stderr string, flags ...string) {
		t.Helper()
		got := command(t, append([]string{"log", "verify", dir}, flags...)...)
		if got.code != code || !strings.Contains(got.stdout, stdout) || !strings.Contains(got.stderr, stderr) {
			t.Errorf("%+v, want %d, %q, %q", got, code, stdout, stderr)
		}
	}
	verify(exitFailed, "", "in use")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	verify(exitOK, "entries 1 to 3, of the terms 2 to 4: all are as they were written\nfurthest: term 4, entry 3; the node's own term is 0\nsegments 1; the newest snapshot ends at 0", "")
	verify(exitOK, "2  term 3  command  9 bytes  ", "", "--entries")
	inSegment(t, dir, "idnwal\x00\x01\x00", "idnwal\x00\x02\x01")
	verify(exitRefused, "", "a newer program")
	inSegment(t, dir, "idnwal\x00\x02\x01", "idnwal\x00\x01\x00")
	inSegment(t, dir, "something", "somethink")
	verify(exitDamaged, "", "DATA_LOSS")
	if err := os.Remove(filepath.Join(dir, "raft.db")); err != nil {
		t.Fatal(err)
	}
	verify(exitFailed, "", "is no data directory")
	record := filepath.Join(dir, "node.json")
	if err := os.WriteFile(record, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	verify(exitDamaged, "", "missing")
	if err := os.WriteFile(filepath.Join(dir, "raft.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	verify(exitDamaged, "", "empty")
}

// inSegment changes the log on disk.
func inSegment(t *testing.T, dir, from, to string) {
	t.Helper()
	segments, err := filepath.Glob(filepath.Join(dir, "log", "*.log"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	content, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	content = bytes.ReplaceAll(content, []byte(from), []byte(to))
	if err := os.WriteFile(segments[0], content, 0o600); err != nil {
		t.Fatal(err)
	}
}
