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
)

func newBackupCommand(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE|DIR",
		Short: "Write a backup of the whole cluster into a file",
		Long: `Writes everything the cluster knows at one moment into FILE: counters, claims,
tags, settings, and the remembered request ids. Any node gives it while it serves.
The file is read back and checked before it gets its name. If FILE is -, it goes to
the standard output, and counts only if the exit code is 0.

With --keep N it goes into the directory DIR, under a name made of its time, its log
index and the cluster's id, and of that cluster's backups there the N newest stay. The
others are deleted only after the new one is whole. That is for timers: it never asks.

With --stale it is what the node asked knows by itself: that needs no quorum, and
may lack the newest ids.`,
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
				return usagef("a backup is nothing to read: write it into a file, or send it on")
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
			b, err := transfer.Open(path)
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
		return usagef("with --keep the target is a directory: %v", err)
	} else if !at.IsDir() {
		return usagef("with --keep the target is a directory, and %s is none", dir)
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

// openInput opens a file, or the standard input, which stays open.
func openInput(path string, stdin io.Reader) (io.ReadCloser, error) {
	if path == standardInput {
		return io.NopCloser(stdin), nil
	}
	return os.Open(path)
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
	c := b.GetCounts()
	rows := [][2]string{
		{"file", fmt.Sprintf("%s, %s, format %d, whole", path, bytesize.Size(b.GetSize()).Rounded(), b.GetFormat())},
		{"cluster", b.GetClusterId()},
		{"log index", fmt.Sprintf("%d, log format %d", b.GetLogIndex(), b.GetLogFormat())},
		{"taken", fmt.Sprintf("%s by node %s, %s", moment(b.GetTime()), b.GetNodeTag(), b.GetVersion())},
		{"state", fmt.Sprintf("%016x", b.GetStateHash())},
		{"holds", fmt.Sprintf("%d databases, %d identities, %d HiLo tags, %d claims, %d series with %d keys, %d request ids, %s of names",
			c.GetDatabases(), c.GetIdentities(), c.GetHilos(), c.GetClaims(), c.GetSeries(), c.GetSeriesKeys(), c.GetRequestIds(),
			bytesize.Size(c.GetBytes()).Rounded())},
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
