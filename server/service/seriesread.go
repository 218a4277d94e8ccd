package service

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/series"
)

// SeriesRequest names a series.
type SeriesRequest struct {
	Database, Series string
	Consistency      Consistency
}

// SeriesInfo is a series without its numbers.
type SeriesInfo = fsm.NamedSeries

// GetSeriesResponse holds a series.
type GetSeriesResponse struct {
	Series   SeriesInfo
	LogIndex uint64
}

// GetSeries reads a series without its numbers.
func (n *numbers) GetSeries(ctx context.Context, req SeriesRequest) (GetSeriesResponse, error) {
	return call(ctx, n.calls, "GetSeries", req, func(ctx context.Context, req SeriesRequest) (res GetSeriesResponse, err error) {
		res.LogIndex, err = n.readSeries(ctx, req, func(s SeriesInfo, _ *series.Series) { res.Series = s })
		return res, err
	})
}

// readSeries calls read with a series that is as new as asked for, and returns the log
// index of that.
func (n *numbers) readSeries(ctx context.Context, req SeriesRequest, read func(SeriesInfo, *series.Series)) (uint64, error) {
	database, name, err := seriesKey(req.Database, req.Series, "series")
	if err != nil {
		return 0, err
	}
	index, err := n.settleFor(ctx, req.Consistency, database, name)
	if err != nil {
		return 0, err
	}
	if !n.state.ReadSeries(database, name, read) {
		return 0, seriesNotFound(name)
	}
	return index, nil
}

// ListSeries lists series in order of their folded names.
func (n *numbers) ListSeries(ctx context.Context, req ListRequest) (Page[SeriesInfo], error) {
	return call(ctx, n.calls, "ListSeries", req, func(ctx context.Context, req ListRequest) (Page[SeriesInfo], error) {
		return list(ctx, n.reader, listSeries, req, n.state.SeriesList, func(s SeriesInfo) (string, SeriesInfo) { return s.Name, s })
	})
}

// SeriesPageRequest asks for a page of a series' scopes, or of a scope's numbers.
type SeriesPageRequest struct {
	SeriesRequest
	// Scope and State say which numbers; all states if it is 0.
	Scope     []string
	State     series.State
	PageSize  int
	PageToken string
}

// cursor returns where the page begins: above a number.
func (req SeriesPageRequest) cursor(what listing) (c cursor, above int64, err error) {
	of := append([]string{req.Database, req.Series, req.State.String()}, req.Scope...)
	if c, err = (cursor{scope: what, database: strings.Join(of, "\x00")}).at(req.PageSize, req.PageToken); err != nil || c.after == "" {
		return c, 0, err
	}
	if above, err = strconv.ParseInt(c.after, 10, 64); err != nil || above < 1 {
		return c, 0, errBadPageToken()
	}
	return c, above, nil
}

// ReportSeries lists the scopes of a series in the order in which they began.
func (n *numbers) ReportSeries(ctx context.Context, req SeriesPageRequest) (Page[series.Summary], error) {
	return call(ctx, n.calls, "ReportSeries", req, n.reportSeries)
}

func (n *numbers) reportSeries(ctx context.Context, req SeriesPageRequest) (page Page[series.Summary], err error) {
	c, skip, err := req.cursor(listScopes)
	if err != nil {
		return page, err
	}
	end, err := n.turn(ctx)
	if err != nil {
		return page, err
	}
	defer end()
	page.LogIndex, err = n.readPieces(ctx, req.SeriesRequest, withinPage(ctx), func(s *series.Series) bool {
		had := len(page.Items)
		page.Items = append(page.Items, s.Report(time.Now().UnixNano(), int(skip)+had, min(scopesAtOnce, c.size+1-had))...)
		return len(page.Items) == had+scopesAtOnce && len(page.Items) <= c.size
	})
	if len(page.Items) > c.size {
		page.Items, page.NextPageToken = page.Items[:c.size], c.token(strconv.FormatInt(skip+int64(c.size), 10))
	}
	return page, err
}

// ListNumbers lists numbers of a scope, ascending. A page can have fewer than were asked
// for, and a next one.
func (n *numbers) ListNumbers(ctx context.Context, req SeriesPageRequest) (Page[series.Number], error) {
	return call(ctx, n.calls, "ListNumbers", req, n.listNumbers)
}

func (n *numbers) listNumbers(ctx context.Context, req SeriesPageRequest) (page Page[series.Number], err error) {
	c, above, err := req.cursor(listNumbers)
	if err != nil {
		return page, err
	}
	end, err := n.turn(ctx)
	if err != nil {
		return page, err
	}
	defer end()
	var next int64
	var unknown error
	pieces := piecesOfPage
	page.LogIndex, err = n.readPieces(ctx, req.SeriesRequest, withinPage(ctx), func(s *series.Series) bool {
		var some []series.Number
		some, next, unknown = s.Numbers(time.Now().UnixNano(), req.Scope, req.State, above, c.size-len(page.Items))
		page.Items, above = append(page.Items, some...), next
		pieces--
		return next > 0 && pieces > 0 && len(page.Items) < c.size
	})
	if unknown != nil {
		return Page[series.Number]{}, &Error{Code: NotFound, Reason: ReasonScopeNotFound, Field: "scope", Message: unknown.Error()}
	}
	if next > 0 {
		page.NextPageToken = c.token(strconv.FormatInt(next, 10))
	}
	return page, err
}

const (
	// scopesAtOnce is how many scopes are looked at while nothing is applied.
	scopesAtOnce = 100
	// piecesOfPage is how often a page of numbers looks at the series.
	piecesOfPage = 10
)

// readPieces calls read with a series until it returns false, and lets others at the state
// between two calls, where it calls pause. Scopes and numbers that come meanwhile are behind
// those that were read.
func (n *numbers) readPieces(ctx context.Context, req SeriesRequest, pause func() error, read func(*series.Series) (more bool)) (index uint64, err error) {
	more := true
	look := func(_ SeriesInfo, s *series.Series) { more = read(s) }
	if index, err = n.readSeries(ctx, req, look); err != nil {
		return index, err
	}
	database, name, err := seriesKey(req.Database, req.Series, "series")
	for more && err == nil {
		if err := pause(); err != nil {
			return index, err
		}
		if !n.state.ReadSeries(database, name, look) {
			return index, seriesNotFound(name)
		}
	}
	return index, err
}

// withinPage returns what ends the reading of a page whose call has no time left.
func withinPage(ctx context.Context) func() error {
	return func() error { return notRead("the page", ctx.Err()) }
}

// notRead is the error of a call whose time ended before it had read something; nil of nil.
func notRead(what string, err error) error {
	if err == nil {
		return nil
	}
	return unavailable(ReasonOverloaded, "the time of the call ended before "+what+" was read", retryBusy, err)
}

// WhoHasRequest asks for a number by its key, or by its text if there is no key.
type WhoHasRequest struct {
	SeriesRequest
	Key, Text string
}

// WhoHasResponse holds a number.
type WhoHasResponse struct {
	Number   series.Number
	LogIndex uint64
}

// WhoHas finds a number by its key or its text.
func (n *numbers) WhoHas(ctx context.Context, req WhoHasRequest) (WhoHasResponse, error) {
	return call(ctx, n.calls, "WhoHas", req, n.whoHas)
}

func (n *numbers) whoHas(ctx context.Context, req WhoHasRequest) (res WhoHasResponse, err error) {
	if (req.Key == "") == (req.Text == "") {
		return res, invalid(ReasonInvalidSeries, "key", "give either a key or a text")
	}
	var found bool
	var bad error
	res.LogIndex, err = n.readSeries(ctx, req.SeriesRequest, func(_ SeriesInfo, s *series.Series) {
		if req.Key != "" {
			res.Number, found = s.WhoHas(time.Now().UnixNano(), req.Key)
		} else {
			res.Number, found, bad = s.Find(time.Now().UnixNano(), req.Text)
		}
	})
	switch {
	case err != nil:
		return WhoHasResponse{}, err
	case bad != nil:
		return WhoHasResponse{}, invalid(ReasonInvalidSeries, "text", "%v", bad)
	case !found:
		return WhoHasResponse{}, &Error{Code: NotFound, Reason: ReasonNumberNotFound, Message: "nobody took such a number"}
	}
	return res, nil
}

// VerifySeriesRequest asks for a part of a verification: from the beginning, or from where the
// part before it ended.
type VerifySeriesRequest struct {
	SeriesRequest
	PageToken string
}

// VerifySeriesResponse says what is wrong with a series; nil is nothing, as far as it was read.
type VerifySeriesResponse struct {
	Wrong *series.VerifyError
	// NextPageToken asks for the next part; empty if there is none.
	NextPageToken string
	LogIndex      uint64
}

// verifiedAtOnce is how many numbers are looked at while nothing is applied: a fraction of a
// millisecond.
const verifiedAtOnce = 500

// restAfter is for how long a verification works before it rests: a rest shorter than that
// would take longer than it says.
const restAfter = 2 * time.Millisecond

// VerifySeries finds the first number that is not in exactly one state, or that its key
// does not lead to. It reads the series in pieces, beside other calls: it rests as long as it
// works. It ends when half of the call's time is over. Calls of one caller wait for each other.
func (n *numbers) VerifySeries(ctx context.Context, req VerifySeriesRequest) (VerifySeriesResponse, error) {
	return call(ctx, n.calls, "VerifySeries", req, n.verifySeries)
}

func (n *numbers) verifySeries(ctx context.Context, req VerifySeriesRequest) (res VerifySeriesResponse, err error) {
	c, at, err := req.cursor()
	if err != nil {
		return res, err
	}
	end, err := n.turn(ctx)
	if err != nil {
		return res, err
	}
	defer end()
	deadline, _ := ctx.Deadline() // Each call has one.
	half := time.Now().Add(time.Until(deadline) / 2)
	var more bool
	var wrong error
	var worked time.Duration
	pause := func() (err error) {
		if worked < restAfter {
			return notRead("the series", ctx.Err())
		}
		err, worked = rest(ctx, worked), 0
		return notRead("the series", err)
	}
	res.LogIndex, err = n.readPieces(ctx, req.SeriesRequest, pause, func(s *series.Series) bool {
		begin := time.Now()
		at, more, wrong = s.VerifySome(at, verifiedAtOnce)
		worked += time.Since(begin)
		return more && !time.Now().After(half)
	})
	errors.As(wrong, &res.Wrong)
	if more {
		res.NextPageToken = c.token(at.String())
	}
	return res, err
}

// cursor returns where the part begins.
func (req VerifySeriesRequest) cursor() (c cursor, at series.VerifyCursor, err error) {
	of := req.Database + "\x00" + req.Series
	if c, err = (cursor{scope: listVerified, database: of}).at(0, req.PageToken); err != nil || c.after == "" {
		return c, at, err
	}
	at, ok := series.ParseVerifyCursor(c.after)
	if !ok {
		return c, at, errBadPageToken()
	}
	return c, at, nil
}

// rest waits, or returns the error of ctx.
func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
