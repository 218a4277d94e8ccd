package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/bytesize"
	"github.com/idnode/idnode/transfer"
	"github.com/idnode/idnode/transfer/counterfile"
)

func newBackupCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE|DIR",
		Short: "Write a backup of the whole cluster into a file",
		Long: `Writes the state of the cluster at one moment into FILE: counters, claims, tags,
settings, and the remembered request ids. Any node that serves can be asked.
The file is read back and checked before it gets its name. If FILE is -, it goes to
the standard output, and is complete only if the exit code is 0.

With --keep N it goes into the directory DIR, under a name made of its time, its log
index and the cluster's id, and of that cluster's backups there the N newest stay. The
others are deleted only after the new one is whole. That is for timers: it never asks.

With --stale it is the state of the node asked: this needs no quorum, and the newest
ids may be missing.`,
		Example: `  idnode backup today.backup
  kubectl exec idnode-a-0 -- /idnode backup - > today.backup
  idnode backup /var/backups/idnode --keep 14
  idnode backup inspect today.backup`,
	}
	staleFlag(cmd.Flags())
	keep := cmd.Flags().Int("keep", 0, "the target is a directory, in which the newest N backups of the cluster stay")
	sure := a.asks(cmd)
	a.clusterWide(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		if args[0] == standardOutput && !cmd.Flags().Changed("keep") {
			if a.toTerminal {
				return usagef("a backup is binary: write it into a file, or pipe it into a program")
			}
			return streamBackup(ctx, s, a.stdout)
		}
		write := s.backupInto(ctx)
		if cmd.Flags().Changed("keep") {
			return addBackup(s.out, args[0], *keep, write)
		}
		if err := sure.replace(args[0]); err != nil {
			return err
		}
		info, err := transfer.SaveBackup(args[0], write)
		return s.out.answer(err, info, func(w io.Writer) { printBackup(w, args[0], info) })
	})
	cmd.AddCommand(newBackupInspectCommand(a))
	return cmd
}

func newBackupInspectCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "inspect FILE",
		Short:   "Check a backup, and show what it holds, by database",
		Example: "  idnode backup inspect today.backup\n  idnode backup - | idnode backup inspect -",
	}
	format := cmd.Flags().StringP("output", "o", "text", "text, or json: one object a line")
	cmd.RunE = a.enter(func(cmd *cobra.Command, args []string) error {
		out, err := newPrinter(a.stdout, *format)
		if err != nil {
			return &usageError{err}
		}
		return withInput(args[0], a.stdin, func(path string) error {
			b, err := openBackup(cmd.Context(), path)
			if err != nil {
				return err
			}
			out.result(b.Info, func(w io.Writer) { printBackup(w, args[0], b.Info) })
			return out.flush()
		})
	})
	return cmd
}

// addBackup writes a backup into a directory, in which only the newest so many stay.
func addBackup(out *printer, dir string, keep int, write transfer.Write) error {
	if keep < 1 {
		return usagef("--keep must be at least 1, not %d", keep)
	}
	if at, err := os.Stat(dir); err != nil {
		return usagef("--keep needs a directory: %v", err)
	} else if !at.IsDir() {
		return usagef("--keep needs a directory; %s is not one", dir)
	}
	path, info, err := transfer.AddBackup(dir, write)
	if err != nil {
		return err
	}
	out.result(info, func(w io.Writer) { printBackup(w, path, info) })
	if err := transfer.DeleteOlder(path, info.GetClusterId(), keep); err != nil {
		return fmt.Errorf("%s is whole, but what is older than the newest %d backups cannot be deleted: %w", path, keep, err)
	}
	return nil
}

// The file names of the standard output and input.
const standardOutput, standardInput = "-", "-"

// openInput opens a file, or the standard input, which stays open. It is read until ctx ends.
func openInput(ctx context.Context, path string, stdin io.Reader) (io.ReadCloser, error) {
	if path == standardInput {
		return io.NopCloser(stdin), nil
	}
	file, err := untilEnd(ctx, func() (*os.File, error) { return os.Open(path) })
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{&input{ctx, file}, file}, nil
}

// openBackup reads a whole backup, or until ctx ends.
func openBackup(ctx context.Context, path string) (*transfer.Backup, error) {
	return untilEnd(ctx, func() (*transfer.Backup, error) { return transfer.Open(path) })
}

// readCounters reads a whole list of counters, or until ctx ends.
func readCounters(ctx context.Context, path string, form transfer.Form, database string) ([]counterfile.Counter, error) {
	return untilEnd(ctx, func() ([]counterfile.Counter, error) { return transfer.ReadCounters(path, form, database) })
}

// withInput calls use with a file that can be read again: of the standard input, with a copy.
func withInput(path string, stdin io.Reader, use func(path string) error) error {
	if path != standardInput {
		return use(path)
	}
	copied, err := transfer.Draft("", "standard-input", func(file *os.File) error {
		_, err := io.Copy(file, stdin)
		return err
	})
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(copied) }() // It is in the folder for temporary files.
	return use(copied)
}

func printBackup(w io.Writer, path string, b *idnodev1.BackupInfo) {
	rows := [][2]string{
		{"file", fmt.Sprintf("%s, %s, format %d, whole", path, bytesize.Size(b.GetSize()).Rounded(), b.GetFormat())},
		{"cluster", b.GetClusterId()},
		{"log index", fmt.Sprintf("%d, log format %d", b.GetLogIndex(), b.GetLogFormat())},
		{"taken", fmt.Sprintf("%s by node %s, %s", moment(b.GetTime()), b.GetNodeTag(), b.GetVersion())},
		{"state", fmt.Sprintf("%016x", b.GetStateHash())},
		{"holds", counted(b.GetCounts(), "")},
	}
	if b.GetFloor() > 0 || b.GetEpoch() > 0 {
		rows = append(rows, [2]string{"floor", fmt.Sprintf("unknown names begin above %d; recovered %d times", b.GetFloor(), b.GetEpoch())})
	}
	for _, s := range b.GetSettings() {
		rows = append(rows, [2]string{"setting", s.GetKey() + " " + settingText(s.GetKey(), s.GetValue())})
	}
	fields(w, rows)
	fmt.Fprintln(w)
	printPlaces(w, b.GetMembers())
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "DATABASE\tIDENTITIES\tDELETED\tHILO\tCLAIMS\tSERIES\tNUMBERS")
	for _, d := range b.GetDatabases() {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", d.GetDatabase(), d.GetIdentities(), d.GetDeletedIdentities(),
			d.GetHilos(), d.GetClaims(), d.GetSeries(), d.GetSeriesNumbers())
	}
	_ = tw.Flush()
	printBackupPools(w, b.GetPools())
}

func printBackupPools(w io.Writer, pools []*idnodev1.BackupPool) {
	if len(pools) == 0 {
		return
	}
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "DATABASE\tPOOL\tIN-USE\tWORKERS\tWINDOW\tLAYOUT")
	for _, p := range pools {
		fmt.Fprintf(tw, "%s\t%s\t%d\t%d\t%s\t%s\n", p.GetDatabase(), docid.Escape(p.GetName()), p.GetInUse(),
			1<<p.GetLayout().GetWorkerBits(), p.GetWindow().AsDuration(), transfer.LayoutText(p.GetLayout()))
	}
	_ = tw.Flush()
}
