package service

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
)

// TestTurns: few calls go on at a time, one of each caller, and a caller that comes later
// waits for one call of each that came before, however many those have waiting.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd, each = 2 * mostTurns, 50
		turns := newTurns()
		begun := make(chan string, crowd*each+1)
		ends := make(chan func(), crowd*each+1)
		ask := func(caller string) {
			end, err := turns.wait(t.Context(), caller)
			if err != nil {
				t.Error(err)
			}
			begun <- caller
			ends <- end
		}
		for i := range crowd * each {
			go ask(fmt.Sprint(i % crowd))
			synctest.Wait()
		}
		if len(begun) != mostTurns {
			t.Errorf("%d go on", len(begun))
		}
		of := map[string]bool{}
		for range mostTurns {
			of[<-begun] = true
		}
		if len(of) != mostTurns {
			t.Errorf("only of %v", of)
		}
		go ask("late")
		synctest.Wait()
		before, came := 0, false
		for range crowd*each + 1 {
			(<-ends)()
			synctest.Wait()
			for len(begun) > 0 && !came {
				if came = <-begun == "late"; !came {
					before++
				}
			}
		}
		if !came || before > crowd {
			t.Errorf("%d calls came before that of a caller with one, of %d callers", before, crowd)
		}
		if len(turns.running) != 0 || len(turns.queues) != 0 {
			t.Errorf("left: %+v", turns)
		}
	})
}

// TestTurnsThatAreGivenUp leave no place taken, whether they waited for a call of their own caller or of others.
func TestTurnsThatAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		var ends []func()
		for i := range mostTurns {
			end, err := turns.wait(t.Context(), fmt.Sprint(i))
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, end)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, caller := range []string{"0", "late"} {
			if _, err := turns.wait(ctx, caller); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a call of %s: %v", caller, err)
			}
		}
		if len(turns.running) != mostTurns || len(turns.queues) != mostTurns {
			t.Errorf("left: %+v", turns)
		}
		for _, end := range ends {
			end()
		}
		if len(turns.running) != 0 || len(turns.queues) != 0 {
			t.Errorf("left: %+v", turns)
		}
	})
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
		end, err := n.Turn(as("shop"))
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
