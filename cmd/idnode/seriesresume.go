package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
)

// Bounds of a call: the server's for numbers that the series does not know, and a bound for scopes,
// which fit into a log entry.
const (
	resumedInScope = 100_000
	resumedAtOnce  = 1_000_000
	scopesAtOnce   = 300
)

const shownScopes = 50

type seriesResume struct {
	name          string
	lasts, closed []string
	sure          *confirmation
	// known caches the scopes of the series, and scopes has them by name.
	known  []*idnodev1.ScopeReport
	scopes map[string]*idnodev1.ScopeReport
}

func newSeriesResumeCommand(a *app) *cobra.Command {
	var r seriesResume
	cmd := &cobra.Command{
		Use:   "resume NAME",
		Short: "Let a series go on that a restore or a recovery suspended",
		Long: `Lets a suspended series give numbers again. It may lack the newest ones: look at the
books first, and give with --last the last number of each scope there, with the
greatest date where the dates of the series have an order. Numbers between become
unknown: 'idnode series report NAME --state unknown' lists them, and 'idnode series
reconcile' says which document has each. --closed names scopes that were closed
after the backup.

A number that is in the books above --last comes again, so the command first shows
what the series has, and asks.`,
		Example: `  idnode series resume invoices --last 2026,BERLIN=4711@2026-12-30 --closed 2025,BERLIN
  idnode series resume orders --last -=99`,
	}
	f := cmd.Flags()
	f.StringArrayVar(&r.lasts, "last", nil,
		"SCOPE=NUMBER[@DATE]: the last number of a scope that is in the books, and the greatest date; one flag for each")
	f.StringArrayVar(&r.closed, "closed", nil, "SCOPE: one that was closed; one flag for each")
	r.sure = a.asks(cmd)
	return a.client(cmd, func(ctx context.Context, s *clusterClient, args []string) error {
		r.name = args[0]
		return r.run(ctx, s)
	})
}

func (r *seriesResume) run(ctx context.Context, s *clusterClient) error {
	books, err := r.books()
	if err != nil {
		return err
	}
	if err := r.ask(ctx, s); err != nil {
		return err
	}
	if books, err = r.complete(ctx, s, books); err != nil {
		return err
	}
	calls := r.calls(books)
	for i, msg := range calls {
		msg.Database, msg.Series, msg.More = s.database, r.name, i < len(calls)-1
		send := s.change // Another restore may have suspended it since, for its own reason.
		if msg.GetMore() {
			send = s.keyed
		}
		res, err := seriesVia(send).ResumeSeries(ctx, msg)
		if err != nil {
			return withoutDate(err)
		}
		if !msg.GetMore() {
			s.out.result(res, func(w io.Writer) { fmt.Fprintln(w, docid.Escape(r.name)+" resumed") })
		}
	}
	return nil
}

// books reads the flags. A scope that is only closed has the last number 0 for now.
func (r *seriesResume) books() (books []*idnodev1.ScopeInBooks, err error) {
	named := map[string]*idnodev1.ScopeInBooks{}
	for _, text := range r.lasts {
		b, err := parseLast(text)
		if err != nil {
			return nil, err
		}
		if named[scopeKey(b.GetScope())] != nil {
			return nil, usagef("--last has the scope %s twice", quote(scopeText(b.GetScope())))
		}
		named[scopeKey(b.GetScope())] = b
		books = append(books, b)
	}
	for _, text := range r.closed {
		scope, err := parseScope(text)
		if err != nil {
			return nil, err
		}
		b := named[scopeKey(scope)]
		if b == nil {
			b = &idnodev1.ScopeInBooks{Scope: scope}
			named[scopeKey(scope)] = b
			books = append(books, b)
		}
		b.Closed = true
	}
	return books, nil
}

// parseLast reads SCOPE=NUMBER[@DATE]. Which dates there are is the cluster's business.
func parseLast(text string) (*idnodev1.ScopeInBooks, error) {
	scope, rest, err := cutScope("--last", "SCOPE=NUMBER[@DATE]", text)
	if err != nil {
		return nil, err
	}
	number, date, dated := strings.Cut(rest, "@")
	if dated && date == "" {
		return nil, usagef("--last %s has no date behind the @", quote(text))
	}
	last, err := parseNumberOf("--last", number)
	return &idnodev1.ScopeInBooks{Scope: scope, Last: last, LastDate: date}, err
}

// ask shows to a person what the series has, and asks.
func (r *seriesResume) ask(ctx context.Context, s *clusterClient) error {
	if r.sure.person && !r.sure.yes {
		if err := r.read(ctx, s); err != nil {
			return err
		}
		printScopes(r.sure.err, r.known[:min(shownScopes, len(r.known))], true)
		if more := len(r.known) - shownScopes; more > 0 {
			fmt.Fprintf(r.sure.err, "and %d more: idnode series report %s\n", more, docid.Escape(r.name))
		}
	}
	return s.confirm(ctx, r.sure, r.question())
}

func (r *seriesResume) question() string {
	last, closed := "the series knows all numbers that are in the books", "no scope was closed since the backup"
	if len(r.lasts) > 0 {
		last = "no number of the books is above " + quote(strings.Join(r.lasts, " ")) + ", or unknown in another scope"
	}
	if len(r.closed) > 0 {
		closed = "no scope but " + quote(strings.Join(r.closed, " ")) + " was closed since the backup"
	}
	return fmt.Sprintf("Resumes %s: %s, and %s. If that is wrong, numbers come twice, or in a scope that was closed.",
		quote(r.name), last, closed)
}

// read asks for the scopes of the series, once.
func (r *seriesResume) read(ctx context.Context, s *clusterClient) (err error) {
	if r.scopes != nil {
		return nil
	}
	r.known, err = scopesOf(ctx, s, r.name)
	r.scopes = map[string]*idnodev1.ScopeReport{}
	for _, x := range r.known {
		r.scopes[scopeKey(x.GetScope())] = x
	}
	return err
}

// complete adds the last numbers of scopes that are only closed: those that the series has.
func (r *seriesResume) complete(ctx context.Context, s *clusterClient, books []*idnodev1.ScopeInBooks) ([]*idnodev1.ScopeInBooks, error) {
	for _, b := range books {
		if b.GetLast() != 0 && b.GetLast() <= resumedInScope {
			continue
		}
		if err := r.read(ctx, s); err != nil {
			return nil, err
		}
		if b.GetLast() == 0 {
			if b.Last = r.scopes[scopeKey(b.GetScope())].GetLast(); b.GetLast() == 0 {
				return nil, usagef("the series knows no scope %s: say its last number with --last", quote(scopeText(b.GetScope())))
			}
		}
	}
	return books, nil
}

// calls splits the books into calls that the cluster accepts, at least one, each with a scope once.
func (r *seriesResume) calls(books []*idnodev1.ScopeInBooks) (calls []*idnodev1.ResumeSeriesRequest) {
	reached := map[string]int64{}
	for name, x := range r.scopes {
		reached[name] = x.GetLast()
	}
	for len(calls) == 0 || len(books) > 0 {
		call, unknown := &idnodev1.ResumeSeriesRequest{}, int64(0)
		calls = append(calls, call)
		var rest []*idnodev1.ScopeInBooks
		for _, b := range books {
			name := scopeKey(b.GetScope())
			next := r.reach(name, reached[name], b.GetLast())
			if len(call.GetBooks()) == scopesAtOnce || unknown+min(next-reached[name], resumedInScope) > resumedAtOnce {
				call, unknown = &idnodev1.ResumeSeriesRequest{}, 0
				calls = append(calls, call)
			}
			unknown += min(max(0, next-reached[name]), resumedInScope)
			part := &idnodev1.ScopeInBooks{Scope: b.GetScope(), Last: next, LastDate: b.GetLastDate(), Closed: b.GetClosed()}
			if reached[name] = next; next < b.GetLast() {
				part.Closed, rest = false, append(rest, b)
			}
			call.Books = append(call.Books, part)
		}
		books = rest
	}
	return calls
}

// reach returns how far one call may go from a number of a scope towards the last one of the books.
func (r *seriesResume) reach(scope string, from, last int64) int64 {
	allotted, left := r.scopes[scope].GetAllotments(), int64(resumedInScope)
	if len(allotted) == 0 {
		return min(last, from+left)
	}
	for _, a := range allotted {
		first := max(a.GetFrom(), from+1)
		if last <= a.GetTo() || a.GetTo()-first+1 >= left {
			return min(last, first+left-1)
		}
		left -= max(0, a.GetTo()-first+1)
	}
	return last
}

// withoutDate says how the date is written that the cluster misses.
func withoutDate(err error) error {
	if reasonOf(err) == "INVALID_SERIES" && strings.Contains(err.Error(), "no last date") {
		return usagef("%s; write it behind the number, as in --last 2026,BERLIN=4711@2026-12-30", describe(err))
	}
	return err
}
