package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAnAuditLogThatCannotBeOpened: only one that is there and not whole is to be kept.
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
