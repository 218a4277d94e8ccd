package main

import (
	"context"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/transfer/counterfile"
)

// periodReport prints what scopes have of the documents' dates of a period.
type periodReport struct {
	series, from, to string
	csv              bool
}

// run prints the whole report, once it is read: what a line says of a scope may be in several parts.
func (r *periodReport) run(ctx context.Context, s *clusterClient) error {
	var all []*idnodev1.PeriodReport
	req := &idnodev1.ReportPeriodRequest{Database: s.database, Series: r.series, From: r.from, To: r.to, Consistency: s.consistency}
	for {
		res, err := seriesVia(s.ask).ReportPeriod(ctx, req)
		if err != nil {
			return err
		}
		for _, part := range res.GetScopes() {
			all = addPeriod(all, part)
		}
		if req.PageToken = res.GetNextPageToken(); req.GetPageToken() == "" {
			return r.print(s.out, all)
		}
	}
}

// addPeriod adds a part of a report. It goes on with the last scope, or begins one.
func addPeriod(all []*idnodev1.PeriodReport, part *idnodev1.PeriodReport) []*idnodev1.PeriodReport {
	if len(all) == 0 || !slices.Equal(all[len(all)-1].GetScope(), part.GetScope()) {
		return append(all, part)
	}
	scope := all[len(all)-1]
	scope.Last = part.GetLast()
	scope.Open += part.GetOpen()
	scope.Confirmed += part.GetConfirmed()
	scope.Voided += part.GetVoided()
	scope.Released += part.GetReleased()
	scope.Unknown += part.GetUnknown()
	for _, next := range part.GetVoidedRanges() {
		ranges := scope.GetVoidedRanges()
		if i := len(ranges) - 1; i >= 0 && ranges[i].GetLast().GetNumber() == next.GetFirst().GetNumber()-1 &&
			ranges[i].GetReason() == next.GetReason() {
			ranges[i].Last = next.GetLast()
			continue
		}
		scope.VoidedRanges = append(ranges, next)
	}
	return all
}

func (r *periodReport) print(out *printer, all []*idnodev1.PeriodReport) error {
	if out.json {
		for _, scope := range all {
			out.object(scope)
		}
		return nil
	}
	lines := [][]string{{"scope", "state", "first", "last", "count", "reason"}}
	for _, scope := range all {
		lines = append(lines, periodLines(scope)...)
	}
	if r.csv {
		w := csv.NewWriter(out.w)
		for _, line := range lines {
			for i := range line {
				line[i] = counterfile.Guarded(line[i])
			}
			_ = w.Write(line)
		}
		w.Flush()
		return w.Error()
	}
	for i, head := range lines[0] {
		lines[0][i] = strings.ToUpper(head)
	}
	tw := tabwriter.NewWriter(out.w, 0, 8, 2, ' ', 0)
	for _, line := range lines {
		for i := range line {
			line[i] = docid.Escape(line[i])
		}
		_, _ = io.WriteString(tw, strings.Join(line, "\t")+"\n")
	}
	return tw.Flush()
}

// periodLines returns a line for all numbers of a scope, one for each state that some have, and of voided ones one for
// each range.
func periodLines(scope *idnodev1.PeriodReport) (lines [][]string) {
	name := scopeText(scope.GetScope())
	line := func(state, first, last string, count int64, reason string) {
		if count > 0 {
			lines = append(lines, []string{name, state, first, last, strconv.FormatInt(count, 10), reason})
		}
	}
	total := scope.GetOpen() + scope.GetConfirmed() + scope.GetVoided() + scope.GetReleased() + scope.GetUnknown()
	line("all", scope.GetFirst().GetText(), scope.GetLast().GetText(), total, "")
	line("open", "", "", scope.GetOpen(), "")
	line("confirmed", "", "", scope.GetConfirmed(), "")
	line("released", "", "", scope.GetReleased(), "")
	line("unknown", "", "", scope.GetUnknown(), "")
	for _, v := range scope.GetVoidedRanges() {
		line("voided", v.GetFirst().GetText(), v.GetLast().GetText(), v.GetLast().GetNumber()-v.GetFirst().GetNumber()+1, v.GetReason())
	}
	return lines
}
