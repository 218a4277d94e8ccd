package service

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/internal/pause"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// ofSeries is a request that reads a series.
type ofSeries interface {
	GetDatabase() string
	GetSeries() string
	GetConsistency() idnodev1.Consistency
}

// GetSeries reads a series without its numbers.
func (n *numbers) GetSeries(ctx context.Context, req *idnodev1.GetSeriesRequest) (*idnodev1.GetSeriesResponse, error) {
	return admission.Call(ctx, n.Control, "GetSeries", req, n.getSeries)
}

func (n *numbers) getSeries(ctx context.Context, req *idnodev1.GetSeriesRequest) (*idnodev1.GetSeriesResponse, error) {
	var found fsm.NamedSeries
	database, name, err := keyOf(req.GetDatabase(), req.GetName(), "series")
	if err != nil {
		return nil, err
	}
	index, err := n.readKeyed(ctx, req.GetConsistency(), database, name, func(s fsm.NamedSeries, _ *series.Series) { found = s })
	return &idnodev1.GetSeriesResponse{Series: seriesMessage(found), LogIndex: index}, err
}

// readSeries calls read with a series that is as new as asked for, and returns its log index.
func (n *numbers) readSeries(ctx context.Context, req ofSeries, read func(fsm.NamedSeries, *series.Series)) (uint64, error) {
	database, name, err := keyOf(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return 0, err
	}
	return n.readKeyed(ctx, req.GetConsistency(), database, name, read)
}

// readKeyed is readSeries of a series whose key was checked.
func (n *numbers) readKeyed(ctx context.Context, consistency idnodev1.Consistency, database, name string,
	read func(fsm.NamedSeries, *series.Series),
) (uint64, error) {
	index, err := n.settleFor(ctx, consistency, database, name)
	if err != nil {
		return 0, err
	}
	if !n.state.ReadSeries(database, name, read) {
		return 0, seriesNotFound(name)
	}
	return index, nil
}

// ListSeries lists series in order of their folded names.
func (n *numbers) ListSeries(ctx context.Context, req *idnodev1.ListSeriesRequest) (*idnodev1.ListSeriesResponse, error) {
	page, err := list(ctx, n.base, "ListSeries", listSeries, req, n.state.SeriesList, func(s fsm.NamedSeries) (string, *idnodev1.Series) {
		return s.Name, seriesMessage(s)
	})
	return &idnodev1.ListSeriesResponse{Series: page.Items, NextPageToken: page.NextPageToken, LogIndex: page.LogIndex}, err
}

// pagedSeries is a request for a page of a series.
type pagedSeries interface {
	ofSeries
	paged
}

// pageOf returns where a page of a series, or of a part of it, begins: above a number.
func pageOf(what listing, req pagedSeries, part ...string) (c cursor, above int64, err error) {
	of := append([]string{req.GetDatabase(), req.GetSeries()}, part...)
	c = cursor{scope: what, database: strings.Join(of, "\x00")}
	if c, err = c.at(int(req.GetPageSize()), req.GetPageToken()); err != nil || c.after == "" {
		return c, 0, err
	}
	if above, err = strconv.ParseInt(c.after, 10, 64); err != nil || above < 1 {
		return c, 0, errBadPageToken()
	}
	return c, above, nil
}

// ReportSeries lists the scopes of a series in the order in which they began. A page before the last can be short.
func (n *numbers) ReportSeries(ctx context.Context, req *idnodev1.ReportSeriesRequest) (*idnodev1.ReportSeriesResponse, error) {
	return admission.Call(ctx, n.Control, "ReportSeries", req, n.reportSeries)
}

func (n *numbers) reportSeries(ctx context.Context, req *idnodev1.ReportSeriesRequest) (*idnodev1.ReportSeriesResponse, error) {
	c, skip, err := pageOf(listScopes, req)
	if err != nil {
		return nil, err
	}
	var scopes []series.Summary
	index, err := n.readPieces(ctx, req, "the page", func() {}, func(s *series.Series) bool {
		had, now := len(scopes), time.Now()
		d, _ := s.Definition()
		today := n.zones.date(d.TimeZone, now)
		scopes = append(scopes, s.At(now.UnixNano()).Report(int(skip)+had, min(scopesAtOnce, c.size+1-had), today)...)
		return len(scopes) == had+scopesAtOnce && len(scopes) <= c.size
	})
	res := &idnodev1.ReportSeriesResponse{LogIndex: index}
	if shown := scopesOfPage(scopes, c.size); shown < len(scopes) {
		scopes, res.NextPageToken = scopes[:shown], c.token(strconv.FormatInt(skip+int64(shown), 10))
	}
	for _, s := range scopes {
		res.Scopes = append(res.Scopes, scopeMessage(s))
	}
	return res, err
}

// scopesOfPage returns how many scopes a page has: fewer than its size if they have very many allotments.
func scopesOfPage(scopes []series.Summary, size int) int {
	allotments := 0
	for i := range scopes[:min(len(scopes), size)] {
		if allotments += len(scopes[i].Allotments); i > 0 && allotments > allotmentsOfPage {
			return i
		}
	}
	return min(len(scopes), size)
}

// ListNumbers lists numbers of a scope, ascending. A page before the last can be short.
func (n *numbers) ListNumbers(ctx context.Context, req *idnodev1.ListNumbersRequest) (*idnodev1.ListNumbersResponse, error) {
	return admission.Call(ctx, n.Control, "ListNumbers", req, n.listNumbers)
}

func (n *numbers) listNumbers(ctx context.Context, req *idnodev1.ListNumbersRequest) (*idnodev1.ListNumbersResponse, error) {
	if req.GetState() < 0 || req.GetState() > idnodev1.NumberState_NUMBER_STATE_UNKNOWN {
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "state", "there is no such state")
	}
	state := series.NumberState(req.GetState())
	c, above, err := pageOf(listNumbers, req, append([]string{state.String()}, req.GetScope()...)...)
	if err != nil {
		return nil, err
	}
	var found []*raftlogv1.SeriesNumber
	var next int64
	var unknown error
	pieces := piecesOfPage
	index, err := n.readPieces(ctx, req, "the page", func() {}, func(s *series.Series) bool {
		var some []*raftlogv1.SeriesNumber
		some, next, unknown = s.At(time.Now().UnixNano()).Numbers(req.GetScope(), state, above, c.size-len(found))
		found, above = append(found, some...), next
		pieces--
		return next > 0 && pieces > 0 && len(found) < c.size
	})
	if unknown != nil {
		return nil, &apierror.Error{Code: apierror.CodeNotFound, Reason: apierror.ReasonScopeNotFound, Field: "scope", Message: unknown.Error()}
	}
	res := &idnodev1.ListNumbersResponse{Numbers: numberMessages(found), LogIndex: index}
	if next > 0 {
		res.NextPageToken = c.token(strconv.FormatInt(next, 10))
	}
	return res, err
}

const (
	// scopesAtOnce is how many scopes are looked at while nothing is applied.
	scopesAtOnce = 100
	// allotmentsOfPage is how many allotments a page of scopes has.
	allotmentsOfPage = 1_000
	// piecesOfPage is how often a page of numbers looks at the series.
	piecesOfPage = 10
)

// readPieces calls read with a series until it returns false or the call's time ends, in the
// caller's turn. It lets others at the state between two calls, where it calls pause. Scopes and
// numbers that come meanwhile are behind those that were read.
func (n *numbers) readPieces(ctx context.Context, req ofSeries, what string, pause func(),
	read func(*series.Series) (more bool),
) (index uint64, err error) {
	end, err := n.AwaitTurn(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	more := true
	look := func(_ fsm.NamedSeries, s *series.Series) { more = read(s) }
	database, name, err := keyOf(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return 0, err
	}
	index, err = n.readKeyed(ctx, req.GetConsistency(), database, name, look)
	for more && err == nil {
		pause()
		switch {
		case ctx.Err() != nil:
			err = apierror.Unavailable(apierror.ReasonOverloaded, "the time of the call ended before "+what+" was read", apierror.RetryBusy,
				ctx.Err())
		case !n.state.ReadSeries(database, name, look):
			err = seriesNotFound(name)
		}
	}
	return index, err
}

// WhoHas finds a number by its key or its text.
func (n *numbers) WhoHas(ctx context.Context, req *idnodev1.WhoHasRequest) (*idnodev1.WhoHasResponse, error) {
	return admission.Call(ctx, n.Control, "WhoHas", req, n.whoHas)
}

func (n *numbers) whoHas(ctx context.Context, req *idnodev1.WhoHasRequest) (*idnodev1.WhoHasResponse, error) {
	if (req.GetKey() == "") == (req.GetText() == "") {
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "key", "give either a key or a text")
	}
	var number *raftlogv1.SeriesNumber
	var found bool
	var bad error
	index, err := n.readSeries(ctx, req, func(_ fsm.NamedSeries, s *series.Series) {
		if req.GetKey() != "" {
			number, found = s.At(time.Now().UnixNano()).WhoHas(req.GetKey())
		} else {
			number, found, bad = s.At(time.Now().UnixNano()).Find(req.GetText())
		}
	})
	switch {
	case err != nil:
		return nil, err
	case bad != nil:
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "text", "%v", bad)
	case !found:
		return nil, &apierror.Error{Code: apierror.CodeNotFound, Reason: apierror.ReasonNumberNotFound, Message: "nobody took such a number"}
	}
	return &idnodev1.WhoHasResponse{Number: numberMessage(number), LogIndex: index}, nil
}

// verifiedAtOnce is how many numbers are looked at while nothing is applied, in below a millisecond.
const verifiedAtOnce = 500

// restAfter is for how long a verification works before it rests: a rest shorter than that
// would take longer than it says.
const restAfter = 2 * time.Millisecond

// VerifySeries finds the first number that is not in exactly one state, or that its key does not
// lead to. It reads the series in pieces, concurrently with other calls: it pauses for as long
// as it works. It ends when half of the call's time is over. Calls of a caller are serialized.
func (n *numbers) VerifySeries(ctx context.Context, req *idnodev1.VerifySeriesRequest) (*idnodev1.VerifySeriesResponse, error) {
	return admission.Call(ctx, n.Control, "VerifySeries", req, n.verifySeries)
}

func (n *numbers) verifySeries(ctx context.Context, req *idnodev1.VerifySeriesRequest) (*idnodev1.VerifySeriesResponse, error) {
	c, at, err := partFrom(listVerified, req)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline() // Each call has a deadline.
	var half time.Time
	var more bool
	var found error
	var worked time.Duration
	rest := func() {
		if worked >= restAfter {
			pause.For(ctx, worked)
			worked = 0
		}
	}
	index, err := n.readPieces(ctx, req, "the series", rest, func(s *series.Series) bool {
		begin := time.Now()
		if half.IsZero() {
			half = begin.Add(deadline.Sub(begin) / 2)
		}
		at, more, found = s.VerifySome(at, verifiedAtOnce)
		worked += time.Since(begin)
		return more && !time.Now().After(half)
	})
	if wrong := (*series.VerifyError)(nil); errors.As(found, &wrong) {
		return &idnodev1.VerifySeriesResponse{Scope: wrong.Scope, Number: wrong.Number, Detail: wrong.Detail, LogIndex: index}, err
	}
	res := &idnodev1.VerifySeriesResponse{Ok: !more, LogIndex: index}
	if more {
		res.NextPageToken = c.token(at.String())
	}
	return res, err
}

// partFrom returns where a part of what is read of a whole series, within some bounds, begins.
func partFrom(what listing, req interface {
	ofSeries
	GetPageToken() string
}, bounds ...string,
) (c cursor, at series.VerifyCursor, err error) {
	of := append([]string{req.GetDatabase(), req.GetSeries()}, bounds...)
	c = cursor{scope: what, database: strings.Join(of, "\x00")}
	if c, err = c.at(0, req.GetPageToken()); err != nil || c.after == "" {
		return c, at, err
	}
	at, ok := series.ParseVerifyCursor(c.after)
	if !ok {
		return c, at, errBadPageToken()
	}
	return c, at, nil
}

func scopeMessage(s series.Summary) *idnodev1.ScopeReport {
	m := &idnodev1.ScopeReport{
		Scope: s.Scope, Last: s.Last, Closed: s.Closed, Before: s.Before, Open: s.Open, Overdue: s.Overdue,
		Confirmed: s.Confirmed, Voided: s.Voided, Released: s.Released, Unknown: s.Unknown,
	}
	if s.LastDate != format.FirstDate {
		m.LastDate = s.LastDate.String()
	}
	if s.Left != series.WithoutEnd {
		m.Left = &s.Left
	}
	for _, a := range s.Allotments {
		shown := &idnodev1.Allotment{From: a.From, To: a.To, Note: a.Note, Given: a.Given, Left: a.Left}
		if a.Until != format.LastDate {
			shown.Until = a.Until.String()
		}
		m.Allotments = append(m.Allotments, shown)
	}
	return m
}
