package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/idnode/idnode/transfer/counterfile"
)

// The forms of files that are imported and exported.
const (
	formRavenDB = "ravendb"
	formCSV     = "csv"
)

func registerForm(f *pflag.FlagSet, form *string) {
	f.StringVar(form, "form", "", "form of the file: ravendb or csv; by its name unless given (.csv is csv)")
}

// formOf returns the form of a file.
func formOf(given, path string) (string, error) {
	switch {
	case given == formRavenDB || given == formCSV:
		return given, nil
	case given != "":
		return "", usagef("--form must be %s or %s, not %q", formRavenDB, formCSV, given)
	case strings.EqualFold(filepath.Ext(path), ".csv"):
		return formCSV, nil
	}
	return formRavenDB, nil
}

func (a *app) importCommand() *cobra.Command {
	var form string
	var dryRun bool
	var sure confirmation
	cmd := &cobra.Command{
		Use:     "import FILE",
		GroupID: groupData,
		Short:   "Merge counters from RavenDB's export or a CSV; nothing goes back",
		Long: `Raises identities and HiLo counters to what FILE has, and adds its claims. Nothing
is lowered or removed. FILE is

  ravendb  RavenDB's export of a database, packed or not: its identities and its
           documents of the collection @hilo. They come into --database.
  csv      a line "database,kind,name,value" and then a line for each counter; the
           kinds are identity, deleted-identity, hilo, and claim without a value.
           A line without a database is one of --database. If the first
           line says "guarded name", as an export does, '=1+1 is the name =1+1.

The file is read to its end before anything is changed. --dry-run shows what would
be changed, and changes nothing.`,
		Example: `  idnode import shop.ravendbdump --database shop --dry-run
  idnode import counters.csv`,
		Args: cobra.ExactArgs(1),
	}
	registerForm(cmd.Flags(), &form)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would be changed")
	sure.register(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		form, err := formOf(form, args[0])
		if err != nil {
			return err
		}
		counters, err := readCounters(args[0], form, s.database)
		if err != nil {
			return err
		}
		question := fmt.Sprintf("Merges %d counters and claims of %s. They only rise, and that cannot be undone.", len(counters), args[0])
		if !dryRun {
			if err := sure.of(cmd).ask(question); err != nil {
				return err
			}
		}
		return importAll(ctx, s, newProgress(a.stderr), counters, dryRun)
	})
}

// readCounters reads a whole file. What names no database is of the given one.
func readCounters(path, form, database string) (all []counterfile.Counter, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // It was only read.
	read := counterfile.ReadRavenDB
	if form == formCSV {
		read = counterfile.ReadCSV
	}
	err = read(file, func(c counterfile.Counter) error {
		if c.Database == "" {
			c.Database = database
		}
		all = append(all, c)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return all, nil
}

// importAll merges counters and says what that did.
func importAll(ctx context.Context, s *clusterClient, p *progress, counters []counterfile.Counter, dryRun bool) error {
	m := newMerger(s, p)
	m.dryRun = dryRun
	show, end := changePrinter(s.out)
	m.changed = show
	if err := m.addAll(ctx, counters); err != nil {
		return err
	}
	end()
	s.out.result(m.total, func(w io.Writer) { printMerged(w, m.total, dryRun) })
	return nil
}

func (a *app) exportCommand() *cobra.Command {
	var form, from string
	var sure confirmation
	cmd := &cobra.Command{
		Use:     "export FILE",
		GroupID: groupData,
		Short:   "Write counters as RavenDB's export or as a CSV",
		Long: `Writes the counters of the cluster, as they are at one moment, in a form that
import reads:

  ravendb  identities and HiLo documents of --database, as RavenDB imports them;
           packed if the name ends with .gz or .ravendbdump. Claims are left out.
  csv      everything, of all databases unless --database names one

With --from it is what a backup holds, without a cluster. If FILE is -, it goes to
the standard output, and what was written is told on the standard error.`,
		Example: `  idnode export shop.ravendbdump --database shop
  idnode export all.csv
  idnode export all.csv --from today.backup`,
		Args: cobra.ExactArgs(1),
	}
	registerForm(cmd.Flags(), &form)
	cmd.Flags().StringVar(&from, "from", "", "a backup to take the counters from")
	sure.register(cmd.Flags())
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		form, err := formOf(form, args[0])
		if err != nil {
			return err
		}
		if err := sure.of(cmd).replace(args[0]); err != nil {
			return err
		}
		if from != "" {
			return exportBackup(s, from, args[0], form, a)
		}
		return exportCluster(ctx, s, &sure, args[0], form, a)
	})
}

// exportCluster takes a backup that does not stay, and exports that: the counters
// are then of one moment.
func exportCluster(ctx context.Context, s *clusterClient, sure *confirmation, path, form string, a *app) error {
	dir := filepath.Dir(path)
	if path == standardOutput {
		dir = "" // The system's, for what is temporary.
	}
	draft, err := os.CreateTemp(dir, filepath.Base(path)+".part-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }() // What is wrong with it was said before.
	err = s.download(ctx, draft, newProgress(sure.err), consistency(false))
	if err := errors.Join(err, draft.Close()); err != nil {
		return err
	}
	return exportBackup(s, draft.Name(), path, form, a)
}

// replace asks before a file is replaced. Anything else than a file, such as a device,
// is not: the file would take its place.
func (c *confirmation) replace(path string) error {
	if path == standardOutput {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err == nil && !info.Mode().IsRegular():
		return usagef("%s is no regular file and is not replaced; - is the standard output", path)
	}
	return c.ask(path + " exists already and will be replaced.")
}
