package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// The comments between which the table stands in a document.
const (
	beginMark = "<!-- mutants: written by `make mutants` -->\n"
	endMark   = "<!-- end of the mutants -->"
)

// score counts the bugs that were found.
func score(verdicts []verdict) string {
	found, bySimulation, longest := 0, 0, time.Duration(0)
	for _, v := range verdicts {
		if v.by == "" {
			continue
		}
		found++
		longest = max(longest, v.took)
		if strings.HasPrefix(v.by, "simulation") {
			bySimulation++
		}
	}
	return fmt.Sprintf("%d of %d planted bugs were found, %d of them by the simulation; the slowest took %s.",
		found, len(verdicts), bySimulation, longest.Round(100*time.Millisecond))
}

// writeTable puts the table into its place in a document.
func writeTable(path string, verdicts []verdict) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(document), beginMark)
	_, after, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		return fmt.Errorf("%s has no place for the mutants", path)
	}
	return os.WriteFile(path, []byte(before+beginMark+"\n"+table(verdicts)+"\n"+endMark+after), 0o644)
}

// table is what stands in the document.
func table(verdicts []verdict) string {
	var b strings.Builder
	commit, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		commit = []byte("unknown")
	}
	fmt.Fprintf(&b, "%s %s, commit %s.\n\n", score(verdicts), time.Now().Format("2 January 2006"), strings.TrimSpace(string(commit)))
	b.WriteString("| bug | what the program does | found by | after | what it said |\n|---|---|---|--:|---|\n")
	for _, v := range verdicts {
		by := v.by
		if by == "" {
			by = "**nobody**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", v.name, v.what, by, v.took.Round(100*time.Millisecond),
			strings.ReplaceAll(v.saw, "|", "\\|"))
	}
	return b.String()
}
