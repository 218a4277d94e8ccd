package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/access/audit"
)

func newAuditCommand(a *app) *cobra.Command {
	return a.group(&cobra.Command{
		Use:     "audit",
		GroupID: groupServer,
		Short:   "Check the record of what changed the cluster",
	}, newAuditVerifyCommand(a))
}

func newAuditVerifyCommand(a *app) *cobra.Command {
	var head string
	cmd := &cobra.Command{
		Use:   "verify FILE...",
		Short: "Check that no line of an audit log was changed, added or taken out",
		Long: `Checks that each line of an audit log (idnode serve --audit FILE) follows from the
one before it, and prints how many there are and the hash of the last one. Files
that were rotated are checked together, the oldest first.

Lines cut off the end, or a wholly rewritten file, are not found by this alone:
keep the printed hash elsewhere, and give it with --head later; it must then be
that of one of the lines.`,
		Example: "  idnode audit verify /var/lib/idnode/audit.log\n  idnode audit verify audit.log.1 audit.log --head $(cat kept-hash)",
	}
	cmd.Flags().StringVar(&head, "head", "", "hash that one of the lines must have")
	cmd.RunE = a.enter(func(_ *cobra.Command, args []string) error {
		var files []io.Reader
		for _, path := range args {
			file, err := os.Open(path)
			if err != nil {
				return &usageError{err: err}
			}
			defer func() { _ = file.Close() }() // It was only read.
			files = append(files, file)
		}
		names := strings.Join(args, ", ")
		found, err := audit.VerifyWith(io.MultiReader(files...), head)
		if err != nil {
			return fmt.Errorf("%s: %w", names, err)
		}
		if head != "" && !found.Has(head) {
			return fmt.Errorf("%s: %w: no line has the hash %s: lines are missing, or the file was rewritten", names, audit.ErrBroken, head)
		}
		return printAudit(a.stdout, found)
	})
	return cmd
}

func printAudit(w io.Writer, f audit.Found) error {
	if f.Records == 0 {
		_, err := fmt.Fprintln(w, "0 lines")
		return err
	}
	_, err := fmt.Fprintf(w, "%d lines, from %s to %s, each follows from the one before\nhead %s\n",
		f.Records-f.Earlier, f.First.Format(time.RFC3339), f.Last.Format(time.RFC3339), f.Head)
	if err == nil && f.Earlier > 0 {
		_, err = fmt.Fprintf(w, "the first line goes on with a chain of %d lines in an earlier file\n", f.Earlier)
	}
	if err == nil && f.Torn > 0 {
		_, err = fmt.Fprintf(w, "%d bytes after the last line are of one that a crash left unfinished, or that is being written\n", f.Torn)
	}
	return err
}
