package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/transfer"
)

// shownSeries is how many series a question or a result names.
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

// seriesQuestion says which series a restore may suspend.
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

// laterSeries describes the state of series that are defined after the restore.
func (r *restore) laterSeries() string {
	if r.skip == 0 && r.floor == "" {
		return ""
	}
	return " Every series that is defined later begins suspended too."
}

// printRestoredSeries says which series are suspended, and since when.
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

// refused lists the series that were not merged, and fails if there are any.
func (r *restore) refused(s *clusterClient, refused []transfer.RefusedSeries) error {
	if len(refused) == 0 {
		return nil
	}
	if err := s.out.flush(); err != nil {
		return err
	}
	for _, x := range refused {
		fmt.Fprintf(s.stderr, "not merged: %s: %s\n", printable(seriesName(x.SeriesName)), printable(describe(x.Reason)))
	}
	return fmt.Errorf("%d of %d series were not merged, or not all of them; all else was, and to restore again changes nothing of that",
		len(refused), len(r.backup.Series))
}
