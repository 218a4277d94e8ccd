package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/store"
	"github.com/idnode/idnode/server/node"
)

func newAuditCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "audit",
		Short: "Check the record of what changed the cluster",
	}, newAuditVerifyCommand(a))
}

func newAuditVerifyCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Check that no line of an audit log was changed, added or taken out",
		Long: `Checks that each line of an audit log (idnode serve --audit FILE) follows from the
one before it, and prints how many there are and the hash of the last one. Files
that were rotated are checked together, the oldest first.

Lines cut off the end, or a wholly rewritten file, are not found by this alone:
keep the printed hash elsewhere, and give it with --head later; it must then be
that of one of the lines. A file without a line fails: it may have had some.`,
		Example: "  idnode audit verify /var/lib/idnode/audit.log\n  idnode audit verify audit.log.1 audit.log --head $(cat kept-hash)",
	}
	head := cmd.Flags().String("head", "", "hash that one of the lines must have")
	cmd.RunE = a.enter(func(cmd *cobra.Command, args []string) error {
		var files []io.Reader
		for _, path := range args {
			file, err := openInput(cmd.Context(), path, a.stdin)
			if err != nil {
				return &usageError{err}
			}
			defer func() { _ = file.Close() }() // It was only read.
			files = append(files, file)
		}
		names := strings.Join(args, ", ")
		found, err := audit.Verify(io.MultiReader(files...), *head)
		if err != nil {
			return fmt.Errorf("%s: %w", names, err)
		}
		if *head != "" && !found.Has(*head) {
			return fmt.Errorf("%s: %w: no line has the hash %s: lines are missing, or the file was rewritten", names, audit.ErrBroken, *head)
		}
		if found.Records == 0 {
			return fmt.Errorf("%s: there is no line: nothing was recorded yet, or the lines were taken away", names)
		}
		return printAudit(a.stdout, found)
	})
	return cmd
}

func printAudit(w io.Writer, f audit.Found) error {
	text := fmt.Sprintf("%d lines, from %s to %s, each follows from the one before\nhead %s\n",
		f.Records-f.Earlier, f.First.Format(time.RFC3339), f.Last.Format(time.RFC3339), f.Head)
	if f.Earlier > 0 {
		text += fmt.Sprintf("the first line goes on with a chain of %d lines in an earlier file\n", f.Earlier)
	}
	if f.Torn > 0 {
		text += fmt.Sprintf("%d bytes after the last line are of one that a crash left unfinished, or that is being written\n", f.Torn)
	}
	_, err := io.WriteString(w, text)
	return err
}

func newLogCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:   "log",
		Short: "Look at a node's Raft log",
	}, newLogVerifyCommand(a))
}

func newLogVerifyCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check the Raft log in a data directory",
		Long: `Reads the whole Raft log of a node that does not run, and checks what the node checks
when it starts: every checksum, that no entry and no file is missing, that none is an
older copy, and that the log goes on where the newest snapshot ends; also that terms
never fall. Nothing is changed.

The line 'furthest' tells which of several stopped nodes, or of several copies of one,
has the most: the one with the latest term, and of these the one with the greatest entry.

The exit code is 4 if the log is damaged, 5 if a newer program wrote it, and 1 if it
cannot be read, as while the node runs.`,
		Example: "  idnode log verify /var/lib/idnode\n  idnode log verify /var/lib/idnode --entries | tail",
	}
	entries := cmd.Flags().Bool("entries", false, "print each entry: index, term, kind, bytes, and when it was appended")
	cmd.RunE = a.enter(func(cmd *cobra.Command, args []string) error {
		var each func(store.LogEntry) error
		if *entries {
			each = func(e store.LogEntry) error {
				_, err := fmt.Fprintf(a.stdout, "%d  term %d  %s  %d bytes  %s\n", e.Index, e.Term, e.Kind, e.Bytes,
					e.AppendedAt.Format(time.RFC3339Nano))
				return err
			}
		}
		found, err := untilEnd(cmd.Context(), func() (store.LogReport, error) { return store.VerifyLog(args[0], each) })
		// A path with a typing error must not lead to the removal of a node.
		if _, none := os.Stat(filepath.Join(args[0], member.FileName)); errors.Is(err, store.ErrMissing) && none != nil {
			return fmt.Errorf("%s is no data directory: it has neither %s nor a log", args[0], member.FileName)
		}
		if errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrMissing) {
			return &endedError{&node.DataLossError{Dir: args[0], Err: err}}
		}
		if errors.Is(err, member.ErrOtherVersion) {
			return &endedError{fmt.Errorf("%s: %w", args[0], err)}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		return printLog(a.stdout, found)
	})
	return cmd
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
