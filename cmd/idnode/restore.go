package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/transfer"
)

type restore struct {
	flags  *pflag.FlagSet
	floor  string
	sure   *confirmation
	merge  transfer.Restore
	status *idnodev1.GetStatusResponse
}

func newRestoreCommand(a *app) *cobra.Command {
	var r restore
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Merge a backup into a running cluster; nothing goes back",
		Long: `Raises every counter of the cluster to what the backup has, and adds its claims and
series. Nothing is lowered or removed, so a restore can be repeated, and
callers may go on meanwhile. Node tags that were given stay given. Remembered
request ids are not restored. - is the standard input: it is copied into a
temporary file ($TMPDIR), and needs --yes.

A series that is new, or lacks something of the backup, is suspended: it gives no
numbers until somebody looks into the books, and calls 'idnode series resume'. The
question and the result name these series; no other one is suspended. One that
cannot be merged is listed at the end with the reason, all else is merged all the
same, and the exit code is 1. So is a pool of Snowflake ids that the cluster has with
another layout or window. The leases of every pool end: its next ids wait for the
longer window.

Ids that another cluster gave after the backup was taken are not in it. So unless
the backup is of this very cluster, say how far its counters may have come since:

  --skip-ahead N   every counter goes on N above the backup's; counters of names
                   that the backup does not know go on above N, also those that
                   the cluster has used already. A HiLo counter moves by whole
                   ranges: count up to 1048576 for each client, and for each node
                   that keeps a reserve
  --floor FILE     a CSV (database,kind,name,value) with values that are taken,
                   such as the highest ones in the applications' own database

To bring back the counters of one database alone, 'idnode export FILE.csv --from BACKUP
--database NAME' and then 'idnode import FILE.csv'.

With both, the higher value counts. With either, every series that is defined later
begins suspended: one of its name may have given numbers. A new cluster must not use tags that the
backup's cluster gave: start it under others (--tag D), or, if the old nodes are
gone for good, restore with --share-tags, before it gives server-side ids.`,
		Example: `  idnode restore today.backup --skip-ahead 1000000
  idnode restore today.backup                         into the cluster it was taken of`,
	}
	r.register(cmd.Flags())
	r.sure = a.asks(cmd)
	return a.clusterWide(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		if err := checkSkipAhead(r.merge.SkipAhead); err != nil {
			return err
		}
		return withInput(args[0], a.stdin, func(path string) error { return r.run(ctx, s, path) })
	})
}

// maxSkipAhead leaves counters most of their numbers: those that are skipped never come back.
const maxSkipAhead = 1 << 48

func checkSkipAhead(n int64) error {
	if n < 0 || n > maxSkipAhead {
		return usagef("--skip-ahead is from 0 to %d, not %d", int64(maxSkipAhead), n)
	}
	return nil
}

func (r *restore) register(f *pflag.FlagSet) {
	r.flags = f
	f.Int64Var(&r.merge.SkipAhead, "skip-ahead", 0, "how many values each counter may have given since the backup was taken; 0 says none")
	f.StringVar(&r.floor, "floor", "", "CSV (database,kind,name,value) of values that are taken")
	f.BoolVar(&r.merge.ShareTags, "share-tags", false, "members go on under tags of the backup's nodes, which are gone; needs --skip-ahead")
	f.BoolVar(&r.merge.Settings, "settings", false, "take over the backup's settings too")
}

func (r *restore) run(ctx context.Context, s *clusterClient, path string) (err error) {
	if r.merge.Backup, err = openBackup(ctx, path); err != nil {
		return err
	}
	if r.floor != "" {
		if r.merge.Floors, err = readCounters(ctx, r.floor, transfer.CSV, ""); err != nil {
			return err
		}
	}
	if r.status, err = clusterOf(ctx, s); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	if r.merge.SkipAhead > 0 && r.merge.SkipAhead < r.merge.Backup.NextRanges {
		fmt.Fprintf(s.stderr,
			"warning: --skip-ahead %d is too little: the counter %s moves by %d if each client that the backup knows takes one more range\n",
			r.merge.SkipAhead, quote(r.merge.Backup.RangesOf), r.merge.Backup.NextRanges)
	}
	c := r.merge.Backup.Info.GetCounts()
	merging := newProgress(s.stderr)
	r.merge.Conn = sending(s.untilAnswered)
	r.merge.Merged = merging.merged(c.GetIdentities() + c.GetDeletedIdentities() + c.GetHilos() + c.GetClaims() + int64(len(r.merge.Floors)))
	before, err := seriesHere(ctx, &r.merge)
	if err != nil {
		return err
	}
	question := r.question() + seriesQuestion(before)
	if r.merge.SkipAhead != 0 || r.floor != "" {
		question += " Every series that is defined later begins suspended too."
	}
	if err := s.confirm(ctx, r.sure, question); err != nil {
		return err
	}
	done, err := r.merge.Run(ctx)
	merging.end()
	if err != nil {
		sayNotMerged(s.stderr, done.NotMerged)
		fmt.Fprintf(s.stderr, "merged before the error: %s; to restore again goes on, and ends the same\n",
			cmp.Or(strings.Join(done.Merged, ", "), "nothing for certain"))
		return err
	}
	after, err := seriesHere(ctx, &r.merge)
	if err != nil {
		return err
	}
	s.out.result(done.Counters, func(w io.Writer) {
		r.print(w, done)
		printMerged(w, done.Counters, false)
		printRestoredSeries(w, before, after)
	})
	if len(done.NotMerged) == 0 {
		return nil
	}
	if err := s.out.flush(); err != nil {
		return err
	}
	sayNotMerged(s.stderr, done.NotMerged)
	return fmt.Errorf("%d were not merged, or not all of them; all else was, and to restore again changes nothing of that",
		len(done.NotMerged))
}

// sayNotMerged lists the series and pools that were not merged.
func sayNotMerged(w io.Writer, list []transfer.NotMerged) {
	for _, x := range list {
		name := transfer.SeriesName{Database: x.Database, Name: x.Name}
		fmt.Fprintf(w, "not merged: %s %s: %s\n", x.Kind, printable(seriesName(name)), printable(describe(x.Reason)))
	}
}

// clusterOf asks the first node that answers for its status.
func clusterOf(ctx context.Context, s *clusterClient) (*idnodev1.GetStatusResponse, error) {
	return clusterVia(s.ask).GetStatus(ctx, &idnodev1.GetStatusRequest{})
}

// check refuses what could go back.
func (r *restore) check() error {
	said := r.flags.Changed("skip-ahead")
	switch from := r.merge.Backup.Info.GetClusterId(); {
	case from != r.status.GetClusterId() && !said && r.floor == "":
		return usagef("the backup is of another cluster (%s), whose later ids are not in it: say with --skip-ahead N or --floor FILE how far "+
			"it may have come; see 'idnode restore --help'", from)
	case r.merge.ShareTags && !said:
		return usagef("--share-tags needs --skip-ahead: how many server-side ids the other nodes may have given since")
	}
	return nil
}

func (r *restore) question() string {
	c := r.merge.Backup.Info.GetCounts()
	text := fmt.Sprintf("Merges %d identities, %d HiLo counters, %d claims and %d series of %s into cluster %s. Counters only rise, and "+
		"that cannot be undone.",
		c.GetIdentities()+c.GetDeletedIdentities(), c.GetHilos(), c.GetClaims(), c.GetSeries(), r.merge.Backup.Path, r.status.GetClusterId())
	if r.merge.SkipAhead > 0 {
		text += fmt.Sprintf(" Each counter goes on %d above the backup's.", r.merge.SkipAhead)
	}
	if pools := len(r.merge.Backup.Info.GetPools()); pools > 0 {
		text += fmt.Sprintf(" The leases of %d pools end: new Snowflake ids wait for a window and 30s.", pools)
	}
	return text
}

func (r *restore) print(w io.Writer, done transfer.Restored) {
	from := r.merge.Backup
	shared := cmp.Or(strings.Join(done.Cluster.GetShared(), ", "), "none")
	rows := [][2]string{
		{"restored", fmt.Sprintf("%s of log index %d into cluster %s", from.Path, from.Info.GetLogIndex(), r.status.GetClusterId())},
		{"tags", fmt.Sprintf("%d newly known as given; shared: %s", done.Cluster.GetGiven(), shared)},
		{"floor", fmt.Sprintf("unknown names begin above %d", done.Cluster.GetFloor())},
	}
	if done.Pools > 0 {
		rows = append(rows, [2]string{"pools", fmt.Sprintf("the leases of %d ended: new ids wait for a window and 30s", done.Pools)})
	}
	fields(w, rows)
}

const shownSeries = 5

// seriesHere returns what the cluster has of a backup's series; nil if the caller must not read them.
func seriesHere(ctx context.Context, r *transfer.Restore) (*transfer.SeriesOfBackup, error) {
	here, err := r.SeriesHere(ctx)
	if codeOf(err) == codes.PermissionDenied {
		return nil, nil
	}
	return &here, err
}

const whileSuspended = " A suspended series gives no numbers until somebody looks into the books, and calls 'idnode series resume'."

func seriesQuestion(here *transfer.SeriesOfBackup) (text string) {
	if here == nil {
		return " Series that are new, or lack something of the backup, are suspended." + whileSuspended
	}
	if len(here.New) > 0 {
		text += fmt.Sprintf(" %d new series begin suspended: %s.", len(here.New), seriesNames(here.New))
	}
	if len(here.Active) > 0 {
		text += fmt.Sprintf(" %d active series are suspended if they lack something of the backup: %s.", len(here.Active),
			seriesNames(here.Active))
	}
	if text != "" {
		text += whileSuspended
	}
	return text
}

func printRestoredSeries(w io.Writer, before, after *transfer.SeriesOfBackup) {
	if before == nil || after == nil {
		fields(w, [][2]string{{"suspended", "series that were new, or lacked something; 'idnode series list' has them, for who may read them"}})
		return
	}
	if len(after.Suspended) == 0 {
		return
	}
	was := map[transfer.SeriesName]bool{}
	for _, name := range before.Suspended {
		was[name] = true
	}
	now := slices.DeleteFunc(slices.Clone(after.Suspended), func(name transfer.SeriesName) bool { return was[name] })
	text := fmt.Sprintf("%d series by this restore", len(now))
	if len(now) > 0 {
		text += ": " + seriesNames(now) + "; look into the books, then 'idnode series resume NAME'"
	}
	if already := len(after.Suspended) - len(now); already > 0 {
		text += fmt.Sprintf("; %d before", already)
	}
	fields(w, [][2]string{{"suspended", text}})
}

func seriesNames(list []transfer.SeriesName) string {
	var names []string
	for _, s := range list[:min(shownSeries, len(list))] {
		names = append(names, seriesName(s))
	}
	text := strings.Join(names, ", ")
	if more := len(list) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func seriesName(s transfer.SeriesName) string {
	if s.Database == docid.DefaultDatabase {
		return quote(s.Name)
	}
	return quote(s.Name) + " of " + quote(s.Database)
}
