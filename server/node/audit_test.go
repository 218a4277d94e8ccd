package node

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnAuditLogThatCannotBeOpened: the error says to keep the file only if it is damaged.
func TestAnAuditLogThatCannotBeOpened(t *testing.T) {
	t.Parallel()
	torn := filepath.Join(t.TempDir(), "audit")
	if err := os.WriteFile(torn, []byte("no record\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, keep := range map[string]bool{torn: true, filepath.Join(t.TempDir(), "none", "audit"): false} {
		c := configs(t, "A")["A"]
		c.Audit = path
		n, err := New(Options{Config: c})
		if err == nil {
			_ = n.release()
			t.Fatal("it starts")
		}
		if strings.Contains(err.Error(), "keep the file") != keep {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestAFailedAuditLogIsTold with the readiness of a node that is ready all the same.
func TestAFailedAuditLogIsTold(t *testing.T) {
	t.Parallel()
	c := configs(t, "A")["A"]
	c.Audit = filepath.Join(t.TempDir(), "audit")
	n := run(t, c)
	n.ready()
	if _, text := n.get("/readyz"); strings.Contains(text, "AUDIT_FAILED") {
		t.Errorf("nothing failed yet: %s", text)
	}
	if err := os.Rename(c.Audit, c.Audit+".1"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.Audit, []byte("no record\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if n.audit.Reopen(t.Context()) == nil {
		t.Error("it goes on with another log")
	}
	if status, text := n.get("/readyz"); status != http.StatusOK || !strings.Contains(text, "warning: ") ||
		!strings.Contains(text, "AUDIT_FAILED") {
		t.Errorf("%d %s", status, text)
	}
}
