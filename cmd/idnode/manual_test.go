package main

import (
	"cmp"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manual is where TestManual leaves what it makes; .ci/release takes it from there. What
// writes man pages runs templates, which the program itself does without.
var (
	manual     = flag.String("manual", "", "folder for the man pages and completions")
	manualTime = flag.Int64("manual-time", 0, "the date of the man pages, in seconds since 1970 UTC")
)

// TestManual: each command has a man page, and each shell its completions.
func TestManual(t *testing.T) {
	folder := cmp.Or(*manual, t.TempDir())
	pages := filepath.Join(folder, "man")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		t.Fatal(err)
	}
	root := newRootCommand(&app{})
	root.DisableAutoGenTag = true
	date := time.Unix(*manualTime, 0).UTC()
	if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "idnode", Manual: "idnode", Date: &date}, pages); err != nil {
		t.Fatal(err)
	}
	manualOf(t, root, pages)
	for name, write := range map[string]func(string) error{
		"idnode.bash": func(file string) error { return root.GenBashCompletionFileV2(file, true) },
		"_idnode":     root.GenZshCompletionFile,
		"idnode.fish": func(file string) error { return root.GenFishCompletionFile(file, true) },
		"idnode.ps1":  root.GenPowerShellCompletionFileWithDesc,
	} {
		file := filepath.Join(folder, name)
		if err := write(file); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(mustRead(t, file)), "__complete") {
			t.Errorf("%s asks the program nothing", name)
		}
	}
}

// manualOf looks at the page of a command, and at those of the commands below it.
func manualOf(t *testing.T, cmd *cobra.Command, pages string) {
	t.Helper()
	if !cmd.IsAvailableCommand() {
		return
	}
	page := string(mustRead(t, filepath.Join(pages, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")))
	for _, part := range []string{".SH NAME", ".SH SYNOPSIS"} {
		if !strings.Contains(page, part) {
			t.Errorf("%s: no %s", cmd.CommandPath(), part)
		}
	}
	for _, child := range cmd.Commands() {
		manualOf(t, child, pages)
	}
}

func mustRead(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
