package config_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/idnode/idnode/server/config"
)

// TestJoinToken: it is read from a file or the standard input, and only when it is needed.
func TestJoinToken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	c := config.Config{JoinTokenFile: file}
	if _, err := c.JoinToken(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(file, []byte("SECRET\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file  string
		stdin io.Reader
		want  string
		fails bool
	}{
		{file, nil, "SECRET", false},
		{"-", strings.NewReader(" SECRET\r\n"), "SECRET", false},
		{"", strings.NewReader("SECRET"), "", false},
		{"-", strings.NewReader("\n"), "", true},
		{"-", nil, "", true},
	} {
		c := config.Config{JoinTokenFile: tt.file, Stdin: tt.stdin}
		if got, err := c.JoinToken(); got != tt.want || (err != nil) != tt.fails {
			t.Errorf("%+v: %q, %v", tt, got, err)
		}
	}
}

// TestATokenIsInNoSetting: neither a flag, a variable nor the file of settings has it, and
// what takes one for its file does not repeat it.
func TestATokenIsInNoSetting(t *testing.T) {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(flags)
	if err := flags.Parse(with(alone, "--join-token=SECRET")); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("a token on the command line: %v", err)
	}
	if _, err := load(t, alone, []string{"IDNODE_JOIN_TOKEN=SECRET"}); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("a token in a variable: %v", err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := mustLoad(t, with(alone, "--join-token-file", file), nil)
	var printed bytes.Buffer
	if err := c.Print(&printed); err != nil || strings.Contains(printed.String(), "SECRET") ||
		!strings.Contains(printed.String(), "join-token-file: "+file) {
		t.Errorf("%v\n%s", err, printed.String())
	}
	c.JoinTokenFile = "SECRET"
	if _, err := c.JoinToken(); err == nil || strings.Contains(err.Error(), "SECRET") {
		t.Errorf("a token in the place of its file: %v", err)
	}
}
