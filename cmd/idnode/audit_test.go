package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/idnode/idnode/access/audit"
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
	for name, text := range map[string]string{"cut": lines[0] + lines[1], "changed": strings.Replace(string(data), `"ops"`, `"oops"`, 1)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := command(t, "audit", "verify", path, "--head", head); got.code != exitFailed || !strings.Contains(got.stderr, "broken") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
