package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/store"
	"github.com/idnode/idnode/server/node"
)

func newLogCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:     "log",
		GroupID: groupServer,
		Short:   "Look at a node's Raft log",
	}, newLogVerifyCommand(a))
}

func newLogVerifyCommand(a *app) *cobra.Command {
	var entries bool
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check the Raft log in a data directory",
		Long: `Reads the whole Raft log of a node that does not run, and checks what the node checks
when it starts: every checksum, that no entry and no file is missing, that none is an
older copy, and that the log goes on where the newest snapshot ends; also that terms
never fall. Nothing is changed.

The line 'furthest' tells which of several stopped nodes, or of several copies of one,
has the most: the one with the latest term, and of these the one with the greatest entry.

The exit code is 4 if the log is damaged, and 1 if it cannot be read, as while the node
runs.`,
		Example: "  idnode log verify /var/lib/idnode\n  idnode log verify /var/lib/idnode --entries | tail",
	}
	cmd.Flags().BoolVar(&entries, "entries", false, "print each entry: index, term, kind, bytes, and when it was appended")
	cmd.RunE = a.enter(func(_ *cobra.Command, args []string) error {
		var each func(store.LogEntry) error
		if entries {
			each = func(e store.LogEntry) error { return printEntry(a.stdout, e) }
		}
		found, err := store.VerifyLog(args[0], each)
		if errors.Is(err, store.ErrMissing) && !isDataDir(args[0]) {
			return fmt.Errorf("%s is no data directory: it has neither %s nor a log", args[0], member.FileName)
		}
		if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrMissing) {
			return &endedError{err: &node.DataLossError{Dir: args[0], Err: err}}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printLog(a.stdout, found)
	})
	return cmd
}

// isDataDir reports whether a node has written its record into a directory. A path with a
// typing error must not lead to the removal of a node.
func isDataDir(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, member.FileName))
	return err == nil
}

func printEntry(w io.Writer, e store.LogEntry) error {
	_, err := fmt.Fprintf(w, "%d  term %d  %s  %d bytes  %s\n", e.Index, e.Term, e.Kind, e.Bytes, e.AppendedAt.Format(time.RFC3339Nano))
	return err
}

func printLog(w io.Writer, f store.LogReport) error {
	text := "no entries"
	if f.Last > 0 {
		text = fmt.Sprintf("entries %d to %d, of the terms %d to %d: all are as they were written", f.First, f.Last, f.FirstTerm, f.LastTerm)
	}
	term, index := f.End()
	text += fmt.Sprintf("\nfurthest: term %d, entry %d", term, index)
	if f.Last == index && !f.LastAt.IsZero() {
		text += ", appended " + f.LastAt.UTC().Format(time.RFC3339)
	}
	text += fmt.Sprintf("; the node's own term is %d", f.Term)
	text += fmt.Sprintf("\nsegments %d; the newest snapshot ends at %d", f.Segments, f.Snapshot)
	if f.Torn > 0 {
		text += fmt.Sprintf("\n%d bytes behind the last entry are of a write that a crash left unfinished", f.Torn)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
