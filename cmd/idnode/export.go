package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/transfer"
)

func newExportCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write counters, or document numbers, as RavenDB's export or as a CSV",
		Long: `Writes the counters of the cluster, as they are at one moment, in a form that
import reads:

  ravendb  identities and HiLo documents of --database, as RavenDB imports them;
           packed if the name ends with .gz or .ravendbdump. Claims are left out.
  csv      all counters and claims, of all databases unless --database names one

The form series, which import does not read, has the document numbers of all databases
unless --database names one: a line for each, with its key and its state.

With --from it is what a backup holds, without a cluster. If FILE is -, it goes to
the standard output, and what was written is told on the standard error.`,
		Example: `  idnode export shop.ravendbdump --database shop
  idnode export all.csv
  idnode export all.csv --from today.backup
  idnode export numbers.csv --form series`,
	}
	form := cmd.Flags().String("form", "", "form of the file: ravendb, csv or series; by its name unless given (.csv is csv)")
	from := cmd.Flags().String("from", "", "a backup to take the counters from")
	sure := a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		form, err := exportForm(*form, args[0])
		if err != nil {
			return err
		}
		if err := sure.replace(args[0]); err != nil {
			return err
		}
		if *from != "" {
			return withInput(*from, cmd.InOrStdin(), func(from string) error { return exportBackup(s, from, args[0], form, a) })
		}
		return exportCluster(ctx, s, args[0], form, a)
	})
}

func exportForm(given, path string) (transfer.Form, error) {
	if transfer.Form(given) == transfer.SeriesCSV {
		return transfer.SeriesCSV, nil
	}
	return formOf(given, path, "ravendb, csv or series")
}

// exportCluster takes a temporary backup and exports it: the counters are then of one moment.
func exportCluster(ctx context.Context, s *clusterClient, path string, form transfer.Form, a *app) error {
	dir := filepath.Dir(path)
	if path == standardOutput {
		dir = "" // The system's, for what is temporary.
	}
	draft, err := transfer.Draft(dir, filepath.Base(path), s.backupInto(ctx, a.stderr, consistency(false)))
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft) }() // What is wrong with it was said before.
	return exportBackup(s, draft, path, form, a)
}

func exportBackup(s *clusterClient, from, path string, form transfer.Form, a *app) error {
	b, err := transfer.Open(from)
	if err != nil {
		return err
	}
	var written, left int
	export := func(to io.Writer) (err error) {
		ext := strings.ToLower(filepath.Ext(path))
		written, left, err = b.Export(to, form, s.database, ext == ".gz" || ext == ".ravendbdump")
		return err
	}
	if path == standardOutput {
		out := bufio.NewWriter(a.stdout)
		err := export(out)
		if err == nil {
			err = out.Flush() // An error of the output is in err already.
		}
		if err != nil {
			return fmt.Errorf("cannot write the export: %w", err)
		}
		sayExported(a.stderr, b, "standard output", form, written, left)
		return nil
	}
	if err := transfer.WriteFile(path, func(file *os.File) error { return export(file) }); err != nil {
		return err
	}
	if !s.out.json {
		sayExported(s.out.w, b, path, form, written, left)
		return nil
	}
	s.out.object(b.Info)
	return nil
}

func sayExported(w io.Writer, b *transfer.Backup, path string, form transfer.Form, written, left int) {
	what := "counters and claims"
	if form == transfer.SeriesCSV {
		what = "numbers"
	}
	fmt.Fprintf(w, "%s: %d %s of log index %d, as %s\n", path, written, what, b.Info.GetLogIndex(), form)
	if left > 0 {
		fmt.Fprintf(w, "left out: %d claims, which RavenDB does not have\n", left)
	}
	if form != transfer.SeriesCSV {
		fmt.Fprintln(w, "left out: series, and the counts of server-side ids: a new cluster must have other tags")
	}
}
