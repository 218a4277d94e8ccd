package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/backup"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

func (a *app) backupCommand() *cobra.Command {
	var stale bool
	var keep int
	var sure confirmation
	cmd := &cobra.Command{
		Use:     "backup FILE|DIR",
		GroupID: groupData,
		Short:   "Write a backup of the whole cluster into a file",
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
		Args: cobra.ExactArgs(1),
	}
	registerStale(cmd.Flags(), &stale)
	cmd.Flags().IntVar(&keep, "keep", 0, "the target is a directory, in which the newest N backups of the cluster stay")
	sure.register(cmd.Flags())
	a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		if cmd.Flags().Changed("keep") {
			return addBackup(ctx, s, newProgress(a.stderr), args[0], keep, consistency(stale))
		}
		if args[0] == standardOutput {
			return streamBackup(ctx, s, a.stdout, newProgress(a.stderr), consistency(stale))
		}
		return takeBackup(ctx, s, sure.of(cmd), args[0], consistency(stale))
	})
	cmd.AddCommand(a.backupInspect())
	return cmd
}

func (a *app) backupInspect() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "inspect FILE",
		Short:   "Check a backup, and show what it holds",
		Example: "  idnode backup inspect today.backup",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text, or json: one object a line")
	cmd.RunE = a.enter(func(_ *cobra.Command, args []string) error {
		out, err := newPrinter(a.stdout, format)
		if err != nil {
			return &usageError{err: err}
		}
		info, err := inspectBackup(args[0])
		if err != nil {
			return err
		}
		out.result(info, func(w io.Writer) { printBackup(w, args[0], info) })
		return out.flush()
	})
	return cmd
}

// takeBackup writes a backup beside its place, checks what is on the disk, and
// then moves it there.
func takeBackup(ctx context.Context, s *clusterClient, sure *confirmation, path string, consistency idnodev1.Consistency) error {
	if err := sure.replace(path); err != nil {
		return err
	}
	draft, info, err := draftBackup(ctx, s, newProgress(sure.err), filepath.Dir(path), filepath.Base(path), consistency)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft) }() // Gone already when all went well.
	if err := likeReplaced(draft, path); err != nil {
		return err
	}
	if err := moveFile(draft, path); err != nil {
		return err
	}
	s.out.result(info, func(w io.Writer) { printBackup(w, path, info) })
	return nil
}

// draftBackup writes a backup into a new file in dir, which its owner alone can read, and
// checks what is on the disk.
func draftBackup(ctx context.Context, s *clusterClient, p *progress, dir, name string, consistency idnodev1.Consistency) (draft string, info *idnodev1.BackupInfo, err error) {
	file, err := os.CreateTemp(dir, name+".part-*")
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	err = s.download(ctx, file, p, consistency)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", nil, err
	}
	info, err = inspectBackup(file.Name())
	return file.Name(), info, err
}

// standardOutput is the name of a file that is none.
const standardOutput = "-"

// streamBackup writes a backup to the standard output as it comes, and checks it on
// the way. What was written cannot be taken back: another endpoint is asked only as
// long as nothing was.
func streamBackup(ctx context.Context, s *clusterClient, out io.Writer, p *progress, consistency idnodev1.Consistency) error {
	unchecked, tee := io.Pipe()
	checked := make(chan error, 1)
	go func() {
		err := checkBackup(unchecked)
		_ = unchecked.CloseWithError(err) // It ends the writer, and never fails.
		checked <- err
	}()
	to := &backup.Counted{Writer: io.MultiWriter(out, tee)}
	failed := &callError{verbose: s.verbose}
	for _, endpoint := range s.endpoints {
		err := s.downloadFrom(ctx, endpoint, to, p, consistency)
		if err == nil {
			return errors.Join(tee.Close(), <-checked)
		}
		failed.failedAt(endpoint, err)
		if to.Bytes > 0 || effectOf(err) == effectRefused || ctx.Err() != nil {
			break
		}
	}
	_ = tee.CloseWithError(failed) // It ends the check, and never fails.
	<-checked
	return failed
}

// checkBackup reads a backup to its end.
func checkBackup(in io.Reader) error {
	r, err := backup.NewReader(in)
	for err == nil {
		_, err = r.Next()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// likeReplaced gives a file that replaces another the other's mode; and its owner,
// where this user may: a backup that root renews stays readable for its readers.
func likeReplaced(draft, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return nil // It replaces nothing.
	}
	return errors.Join(os.Chmod(draft, info.Mode().Perm()), keepOwnerOf(draft, path))
}

// moveFile gives a file its name; both are durable when it returns.
func moveFile(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// download writes a backup into a file, from the first endpoint that gives all of
// it. The timeout is for each piece: the whole may take long.
func (s *clusterClient) download(ctx context.Context, file *os.File, p *progress, consistency idnodev1.Consistency) error {
	failed := &callError{verbose: s.verbose}
	for _, endpoint := range s.endpoints {
		err := s.downloadFrom(ctx, endpoint, file, p, consistency)
		if err == nil {
			return nil
		}
		failed.failedAt(endpoint, err)
		if effectOf(err) == effectRefused || ctx.Err() != nil {
			return failed
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		if err := file.Truncate(0); err != nil {
			return err
		}
	}
	return failed
}

func (s *clusterClient) downloadFrom(ctx context.Context, endpoint string, file io.Writer, p *progress, consistency idnodev1.Consistency) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silence := time.AfterFunc(s.timeout, func() { cancel(context.DeadlineExceeded) })
	defer silence.Stop()
	size, err := s.receive(ctx, endpoint, file, consistency, func(size int64) {
		silence.Reset(s.timeout)
		p.say("%d bytes received", size)
	})
	if err != nil && errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return fmt.Errorf("%s fell silent after %d bytes: %w", endpoint, size, context.DeadlineExceeded)
	}
	return err
}

// receive writes what a node sends; got is told the size after each piece.
func (s *clusterClient) receive(ctx context.Context, endpoint string, w io.Writer, consistency idnodev1.Consistency, got func(size int64)) (size int64, err error) {
	conn, err := s.connect(ctx, endpoint)
	if err != nil {
		return 0, err
	}
	stream, err := idnodev1.NewAdminServiceClient(conn).Backup(ctx, &idnodev1.BackupRequest{Consistency: consistency})
	for err == nil {
		var piece *idnodev1.BackupResponse
		if piece, err = stream.Recv(); err == nil {
			_, err = w.Write(piece.GetData())
			size += int64(len(piece.GetData()))
			got(size)
		}
	}
	if errors.Is(err, io.EOF) {
		return size, nil
	}
	return size, err
}

// printBackup prints what a backup holds.
func printBackup(w io.Writer, path string, b *idnodev1.BackupInfo) {
	c := b.GetCounts()
	rows := [][2]string{
		{"file", fmt.Sprintf("%s, %d bytes, format %d, whole", path, b.GetSize(), b.GetFormat())},
		{"cluster", b.GetClusterId()},
		{"log index", fmt.Sprintf("%d, log format %d", b.GetLogIndex(), b.GetLogFormat())},
		{"taken", fmt.Sprintf("%s by node %s, %s", b.GetTime().AsTime().Format(time.RFC3339), b.GetNodeTag(), b.GetVersion())},
		{"state", fmt.Sprintf("%016x", b.GetStateHash())},
		{"holds", fmt.Sprintf("%d databases, %d identities, %d HiLo tags, %d claims, %d request ids, %d bytes of names",
			c.GetDatabases(), c.GetIdentities(), c.GetHilos(), c.GetClaims(), c.GetRequestIds(), c.GetBytes())},
	}
	if b.GetFloor() > 0 || b.GetEpoch() > 0 {
		rows = append(rows, [2]string{"floor", fmt.Sprintf("unknown names begin above %d; recovered %d times", b.GetFloor(), b.GetEpoch())})
	}
	for _, s := range b.GetSettings() {
		rows = append(rows, [2]string{"setting", fmt.Sprintf("%s %d", s.GetKey(), s.GetValue())})
	}
	fields(w, rows)
	fmt.Fprintln(w)
	printPlaces(w, b.GetMembers())
	fmt.Fprintln(w)
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "DATABASE\tIDENTITIES\tDELETED\tHILO\tCLAIMS")
	for _, d := range b.GetDatabases() {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\n", d.GetDatabase(), d.GetIdentities(), d.GetDeletedIdentities(), d.GetHilos(), d.GetClaims())
	}
	_ = tw.Flush()
}
