package service

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/server/apierror"
)

// pieceState calls a test before each look at a series.
type pieceState struct {
	State
	before func()
}

func (s *pieceState) ReadSeries(db, name string, read func(fsm.NamedSeries, *series.Series)) bool {
	if s.before != nil {
		s.before()
	}
	return s.State.ReadSeries(db, name, read)
}

// newLongSeries is a node with a series of so many numbers.
func newLongSeries(t *testing.T, numbers int) (node, *pieceState) {
	t.Helper()
	var state *pieceState
	n := newSeriesNode(t, func(c *Config) {
		state = &pieceState{State: c.State}
		c.State = state
	})
	for i := 0; i < numbers; i += 500 {
		var keys []string
		for j := range 500 {
			keys = append(keys, fmt.Sprintf("key-%d", i+j))
		}
		if _, err := n.TakeNumbers(t.Context(), berlin(keys...)); err != nil {
			t.Fatal(err)
		}
	}
	return n, state
}

var (
	invoices    = "invoices"
	allInvoices = &idnodev1.VerifySeriesRequest{Series: invoices}
)

// TestAVerificationIsInPieces: others are at the state between two of them, and its time is
// looked at.
func TestAVerificationIsInPieces(t *testing.T) {
	n, state := newLongSeries(t, 3_000)
	pieces := 0
	state.before = func() { pieces++ }
	if res, err := n.VerifySeries(t.Context(), allInvoices); err != nil || !res.Ok || pieces != 3_000/verifiedAtOnce {
		t.Errorf("%v, %v after %d pieces", res, err, pieces)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if pieces = 0; verifiedAtOnce > 1_000 {
		t.Errorf("a piece has %d numbers", verifiedAtOnce)
	}
	state.before = func() {
		if pieces++; pieces == 3 {
			cancel()
		}
	}
	if _, err := n.VerifySeries(ctx, allInvoices); pieces != 3 {
		t.Errorf("%v after %d pieces", err, pieces)
	} else {
		wantError(t, err, apierror.CodeUnavailable, apierror.ReasonOverloaded, "")
	}
}

// TestAVerificationIsInParts: one that takes longer than half of its call is gone on with, and
// reads each number once. A token of another series, and one of no place, are refused.
func TestAVerificationIsInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, state := newLongSeries(t, 3_000)
		pieces, parts := 0, 0
		state.before = func() { pieces++; time.Sleep(100 * time.Millisecond) }
		req := proto.CloneOf(allInvoices)
		for more := true; more; more = req.PageToken != "" {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			res, err := n.VerifySeries(ctx, req)
			cancel()
			if err != nil || res.Detail != "" {
				t.Fatal(res, err)
			}
			if parts++; parts > 1 && req.PageToken == res.NextPageToken {
				t.Fatal("the verification stands still")
			}
			req.PageToken = res.NextPageToken
		}
		if pieces != 3_000/verifiedAtOnce || parts != pieces/3 {
			t.Errorf("%d pieces in %d parts", pieces, parts)
		}
	})
	n, _ := newLongSeries(t, 0)
	c, _, _ := partFrom(listVerified, allInvoices)
	for _, token := range []string{
		c.token("0:-1:"), c.token("1"), c.token("x:1:"), "?",
		cursor{scope: listVerified, database: "\x00bills"}.token("0:1:"),
	} {
		_, err := n.VerifySeries(t.Context(), &idnodev1.VerifySeriesRequest{Series: invoices, PageToken: token})
		wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidPageToken, "page_token")
	}
}

// TestVerificationsOfACallerTakeTurns: those of others do not wait for them. One whose time
// ends while it waits is told so.
func TestVerificationsOfACallerTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, state := newLongSeries(t, 1_000)
		going, go1 := atomic.Int64{}, make(chan struct{})
		state.before = func() {
			if going.Add(1) == 1 {
				<-go1
			}
		}
		results := make(chan error, 3)
		verify := func(ctx context.Context) {
			_, err := n.VerifySeries(ctx, allInvoices)
			results <- err
		}
		ctx, cancel := context.WithCancel(as("shop"))
		go verify(as("shop"))
		synctest.Wait()
		go verify(as("shop"))
		go verify(ctx)
		synctest.Wait()
		if going.Load() != 1 {
			t.Errorf("%d looks at the series while one verifies", going.Load())
		}
		if _, err := n.VerifySeries(as("other"), allInvoices); err != nil {
			t.Errorf("another caller waits: %v", err)
		}
		cancel()
		wantError(t, <-results, apierror.CodeUnavailable, apierror.ReasonOverloaded, "")
		close(go1)
		for range 2 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestAReportIsInPieces, and a page of numbers: they have all that one look would have.
func TestAReportIsInPieces(t *testing.T) {
	n, state := newLongSeries(t, 0)
	for i := range 250 {
		take := &idnodev1.TakeNumbersRequest{
			Series: "invoices", Keys: []string{fmt.Sprint(i)},
			Values: map[string]string{"branch": fmt.Sprint(i)},
		}
		if _, err := n.TakeNumbers(t.Context(), take); err != nil {
			t.Fatal(err)
		}
	}
	pieces := 0
	state.before = func() { pieces++ }
	for size, want := range map[int]int{100: 2, 249: 3, 250: 3, 1000: 3} {
		pieces = 0
		page, err := n.ReportSeries(t.Context(), &idnodev1.ReportSeriesRequest{Series: invoices, PageSize: int32(size)})
		if err != nil || len(page.Scopes) != min(size, 250) || (page.NextPageToken == "") != (size >= 250) || pieces != want {
			t.Errorf("%d of 250 scopes: %d, %q, %v in %d pieces", size, len(page.Scopes), page.NextPageToken, err, pieces)
		}
	}
	n, state = newLongSeries(t, 3_000)
	page, err := n.ReportSeries(t.Context(), &idnodev1.ReportSeriesRequest{Series: invoices})
	if err != nil {
		t.Fatal(err)
	}
	state.before, pieces = func() { pieces++ }, 0
	list := &idnodev1.ListNumbersRequest{Series: invoices, Scope: page.Scopes[0].Scope, State: idnodev1.NumberState_NUMBER_STATE_VOIDED}
	if none, err := n.ListNumbers(t.Context(), list); err != nil || len(none.Numbers) > 0 || none.NextPageToken != "" || pieces < 3 {
		t.Errorf("%+v, %v in %d pieces", none, err, pieces)
	}
}

// TestKeysAndScopesAreNewNames of their caller: a key that has its number is none.
func TestKeysAndScopesAreNewNames(t *testing.T) {
	n := newSeriesNode(t, nil)
	limits(t, n, rights.Limit{Principals: []string{"shop"}, NewNamesPerHour: 4})
	take := func(branch string, keys ...string) error {
		_, err := n.TakeNumbers(as("shop"),
			&idnodev1.TakeNumbersRequest{Series: "invoices", Keys: keys, Values: map[string]string{"branch": branch}})
		return err
	}
	if err := take("B", "a", "b"); err != nil { // And the scope.
		t.Fatal(err)
	}
	before := n.world.Proposals()
	wantError(t, take("B", "c", "d"), apierror.CodeResourceExhausted, apierror.ReasonRateLimited, "")
	wantError(t, take("C", "c"), apierror.CodeResourceExhausted, apierror.ReasonRateLimited, "")
	if n.world.Proposals() != before {
		t.Error("a key beyond the limit was proposed")
	}
	for _, keys := range [][]string{{"a"}, {"b", "a"}, {"c"}, {"a", "c"}} {
		if err := take("B", keys...); err != nil {
			t.Errorf("%v: %v", keys, err)
		}
	}
	wantError(t, take("B", "d"), apierror.CodeResourceExhausted, apierror.ReasonRateLimited, "")
	if _, err := n.TakeNumbers(as("other"), berlin("d")); err != nil {
		t.Errorf("another caller: %v", err)
	}
}

// TestTheOnlyScopeIsNoNewName: a series whose numbers have no parts before them has one scope
// from the beginning, so its first document is one new name.
func TestTheOnlyScopeIsNoNewName(t *testing.T) {
	n := newSeriesNode(t, nil)
	if _, err := n.DefineSeries(t.Context(), &idnodev1.DefineSeriesRequest{
		Name: "plain", Definition: definitionMessage(series.Definition{Format: "{number}"}),
	}); err != nil {
		t.Fatal(err)
	}
	limits(t, n, rights.Limit{Principals: []string{"shop"}, NewNamesPerHour: 1})
	take := func(key string) error {
		_, err := n.TakeNumbers(as("shop"), &idnodev1.TakeNumbersRequest{Series: "plain", Keys: []string{key}})
		return err
	}
	if err := take("a"); err != nil {
		t.Fatal(err)
	}
	wantError(t, take("b"), apierror.CodeResourceExhausted, apierror.ReasonRateLimited, "")
}

// TestWhatTakesLongTakesTurns: reports, lists of numbers, verifications, new templates and previews
// of one caller. Cheap calls do not wait behind them, nor does another caller.
func TestWhatTakesLongTakesTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newSeriesNode(t, nil)
		if _, err := n.TakeNumbers(as("shop"), berlin("a")); err != nil {
			t.Fatal(err)
		}
		page := &idnodev1.ReportSeriesRequest{Series: invoices}
		report, err := n.ReportSeries(as("shop"), page)
		if err != nil {
			t.Fatal(err)
		}
		inScope := &idnodev1.ListNumbersRequest{Series: invoices, Scope: report.Scopes[0].Scope}
		template := 0
		calls := map[string]func(context.Context) error{
			"report": func(ctx context.Context) error { _, err := n.ReportSeries(ctx, page); return err },
			"period": func(ctx context.Context) error {
				_, err := n.ReportPeriod(ctx, &idnodev1.ReportPeriodRequest{Series: invoices})
				return err
			},
			"list":   func(ctx context.Context) error { _, err := n.ListNumbers(ctx, inScope); return err },
			"verify": func(ctx context.Context) error { _, err := n.VerifySeries(ctx, allInvoices); return err },
			"format": func(ctx context.Context) error {
				template++
				req := &idnodev1.FormatNumberRequest{Of: &idnodev1.FormatNumberRequest_Format{Format: fmt.Sprintf("%d-{number}", template)}, Number: 1}
				_, err := n.FormatNumber(ctx, req)
				return err
			},
			"preview": func(ctx context.Context) error {
				req := &idnodev1.DefineSeriesRequest{Name: "others", DryRun: true, Definition: &idnodev1.SeriesDefinition{Format: "{number}"}}
				_, err := n.DefineSeries(ctx, req)
				return err
			},
		}
		end, err := n.numbers.AwaitTurn(as("shop"))
		if err != nil {
			t.Fatal(err)
		}
		for name, call := range calls {
			if err := call(as("other")); err != nil {
				t.Errorf("%s of another caller: %v", name, err)
			}
			start := time.Now()
			wantError(t, call(as("shop")), apierror.CodeUnavailable, apierror.ReasonOverloaded, "")
			if time.Since(start) != DefaultCallTimeout {
				t.Errorf("%s gave up after %s", name, time.Since(start))
			}
		}
		if _, err := n.GetSeries(as("shop"), &idnodev1.GetSeriesRequest{Name: invoices}); err != nil {
			t.Errorf("what is cheap waits: %v", err)
		}
		end()
		for name, call := range calls {
			if err := call(as("shop")); err != nil {
				t.Errorf("%s afterwards: %v", name, err)
			}
		}
	})
}
