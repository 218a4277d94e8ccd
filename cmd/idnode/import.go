package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/transfer"
	"github.com/idnode/idnode/transfer/counterfile"
)

// addForm adds --form for a file that has one of the forms, and returns a function that returns the form of the
// file at a path, by the flag or its name.
func addForm(cmd *cobra.Command, forms ...string) (of func(path string) (transfer.Form, error)) {
	given := cmd.Flags().String("form", "", "form of the file: "+anyOf(forms)+"; by its name unless given (.csv is csv)")
	completeFlag(cmd, "form", forms)
	return func(path string) (transfer.Form, error) {
		switch {
		case slices.Contains(forms, *given):
			return transfer.Form(*given), nil
		case *given != "":
			return "", usagef("--form must be %s, not %q", anyOf(forms), *given)
		case strings.EqualFold(filepath.Ext(path), ".csv"):
			return transfer.CSV, nil
		}
		return transfer.RavenDB, nil
	}
}

func newImportCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Merge counters from RavenDB's export or a CSV; nothing goes back",
		Long: `Raises identities and HiLo counters to what FILE has, and adds its claims. Nothing
is lowered or removed. FILE, or the standard input (-, with --yes), is

  ravendb  RavenDB's export of a database, packed or not: its identities and its
           documents of the collection @hilo. They come into --database.
  csv      a line "database,kind,name,value" and then a line for each counter; the
           kinds are identity, deleted-identity, hilo, and claim without a value.
           A line without a database is one of --database. If the first
           line says "guarded name", as an export does, '=1+1 is the name =1+1.

The file is read to its end before anything is changed, and what a limit has no room
for is refused before. --dry-run shows what would be changed, and changes nothing.`,
		Example: `  idnode import shop.ravendbdump --database shop --dry-run
  idnode import counters.csv`,
	}
	formOf := addForm(cmd, "ravendb", "csv")
	dryRun := cmd.Flags().Bool("dry-run", false, "only show what would be changed")
	sure := a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		form, err := formOf(args[0])
		if err != nil {
			return err
		}
		var counters []counterfile.Counter
		err = withInput(args[0], a.stdin, func(path string) (err error) {
			counters, err = readCounters(ctx, path, form, s.database)
			return err
		})
		if errors.Is(err, counterfile.ErrForm) && form == transfer.RavenDB {
			return fmt.Errorf("%w; it was read as RavenDB's export, --form csv reads a list", err)
		}
		if err != nil {
			return err
		}
		if _, err := clusterOf(ctx, s); err != nil {
			return err // Without a server, a merge would be retried for a minute.
		}
		question := fmt.Sprintf("Merges %d counters and claims of %s. They only rise, and that cannot be undone.", len(counters), args[0])
		if !*dryRun {
			if err := s.confirm(ctx, sure, question); err != nil {
				return err
			}
		}
		return importAll(ctx, s, counters, *dryRun)
	})
}

func importAll(ctx context.Context, s *clusterClient, counters []counterfile.Counter, dryRun bool) error {
	merging := newProgress(s.stderr)
	show, end := changePrinter(s.out)
	send := sending(s.untilAnswered)
	if dryRun {
		send = s.askUntilAnswered
	}
	m := transfer.Merger{Conn: send, DryRun: dryRun, Changed: show, Merged: merging.merged(int64(len(counters)))}
	total, err := m.Merge(ctx, counters)
	merging.end()
	if err != nil {
		return err
	}
	end()
	s.out.result(total, func(w io.Writer) { printMerged(w, total, dryRun) })
	return nil
}

func printMerged(w io.Writer, m *idnodev1.MergeCountersResponse, dryRun bool) {
	would := ""
	if dryRun {
		would = "would be "
	}
	fields(w, [][2]string{
		{"created", fmt.Sprintf("%d counters %snew", m.GetCreated(), would)},
		{"raised", fmt.Sprintf("%d counters %sraised", m.GetRaised(), would)},
		{"claimed", fmt.Sprintf("%d ids %sclaimed", m.GetClaimed(), would)},
		{"unchanged", fmt.Sprintf("%d are as high, or claimed, already", m.GetUnchanged())},
	})
	for _, c := range m.GetConflicts() {
		fmt.Fprintf(w, "conflict: %s of %s is claimed, and an identity may have issued it to another caller\n",
			docid.Escape(c.GetId()), c.GetDatabase())
	}
}

// changePrinter prints the changes of a dry run, as they come.
func changePrinter(p *printer) (print func(*idnodev1.CounterChange), end func()) {
	tw := tabwriter.NewWriter(p.w, 0, 8, 2, ' ', 0)
	first := true
	print = func(c *idnodev1.CounterChange) {
		if p.json {
			p.object(c)
			return
		}
		if first {
			fmt.Fprintln(tw, "DATABASE\tKIND\tNAME\tBEFORE\tAFTER")
			first = false
		}
		before, after := fmt.Sprint(c.GetBefore()), fmt.Sprint(c.GetAfter())
		if c.GetIsNew() {
			before = "-"
		}
		if c.GetKind() == idnodev1.CounterKind_COUNTER_KIND_CLAIM {
			after = "claimed"
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", c.GetDatabase(), word(c.GetKind()), docid.Escape(c.GetName()), before, after)
	}
	return print, func() { _ = tw.Flush() }
}

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
unless --database names one: a line for each, with its text, its key and its state. A cell
that a spreadsheet would take for a formula (it begins with =, +, - or @) has an
apostrophe before it: without it, a key is as the books have it.

With --from it is what a backup holds, without a cluster. If FILE is -, it goes to
the standard output, and what was written is told on the standard error.`,
		Example: `  idnode export shop.ravendbdump --database shop
  idnode export all.csv
  idnode export all.csv --from today.backup
  idnode export numbers.csv --form series`,
	}
	formOf := addForm(cmd, "ravendb", "csv", "series")
	from := cmd.Flags().String("from", "", "a backup to take the counters from")
	sure := a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		form, err := formOf(args[0])
		if err != nil {
			return err
		}
		if err := sure.replace(args[0]); err != nil {
			return err
		}
		if *from != "" {
			return withInput(*from, a.stdin, func(from string) error { return exportBackup(ctx, s, from, args[0], form, a) })
		}
		return exportCluster(ctx, s, args[0], form, a)
	})
}

// exportCluster takes a temporary backup and exports it: the counters are then of one moment.
func exportCluster(ctx context.Context, s *clusterClient, path string, form transfer.Form, a *app) error {
	dir := filepath.Dir(path)
	if path == standardOutput {
		dir = "" // The system's, for what is temporary.
	}
	draft, err := transfer.Draft(dir, filepath.Base(path), s.backupInto(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft) }() // What is wrong with it was said before.
	return exportBackup(ctx, s, draft, path, form, a)
}

func exportBackup(ctx context.Context, s *clusterClient, from, path string, form transfer.Form, a *app) error {
	b, err := openBackup(ctx, from)
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
		sayExported(a.stderr, b, "standard output", s.database, form, written, left)
		return nil
	}
	if err := transfer.WriteFile(path, func(file *os.File) error { return export(file) }); err != nil {
		return err
	}
	s.out.result(b.Info, func(w io.Writer) { sayExported(w, b, path, s.database, form, written, left) })
	return nil
}

func sayExported(w io.Writer, b *transfer.Backup, path, database string, form transfer.Form, written, left int) {
	what := "counters and claims"
	if form == transfer.SeriesCSV {
		what = "numbers"
	}
	fmt.Fprintf(w, "%s: %d %s of log index %d, as %s\n", path, written, what, b.Info.GetLogIndex(), form)
	if left > 0 {
		fmt.Fprintf(w, "left out: %d claims, which RavenDB does not have\n", left)
	}
	others := slices.DeleteFunc(slices.Clone(b.Info.GetDatabases()), func(d *idnodev1.DatabaseCounts) bool {
		return d.GetDatabase() == docid.DefaultDatabase
	})
	if form == transfer.RavenDB && database == "" && len(others) > 0 {
		fmt.Fprintf(w, "left out: %d other databases: --database says which one is exported\n", len(others))
	}
	if form != transfer.SeriesCSV {
		fmt.Fprintln(w, "left out: series, pools, and the counts of server-side ids: a new cluster must have other tags")
	}
}
