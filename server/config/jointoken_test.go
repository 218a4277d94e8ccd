package config_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/idnode/idnode/server/config"
)

// TestJoinTokenText: a token is given itself, or in a file that is read only when the
// token is needed.
func TestJoinTokenText(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	c := config.Config{JoinToken: "@" + file}
	if _, err := c.JoinTokenText(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(file, []byte("SECRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"@" + file: "SECRET", "SECRET": "SECRET", "": ""} {
		c.JoinToken = given
		if got, err := c.JoinTokenText(); err != nil || got != want {
			t.Errorf("%q is %q, %v; want %q", given, got, err, want)
		}
	}
}
