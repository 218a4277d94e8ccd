package service

import (
	"context"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// FoundNumber is a number with the series that it is of.
type FoundNumber struct {
	Series string
	Number *idnodev1.SeriesNumber
}

const (
	// askedAtOnce is how many series are named while nothing is applied.
	askedAtOnce = 100
	// mostFound bounds an answer: a key may have a number in each series.
	mostFound = 100
)

// FindNumbers finds what each series of a database knows of a key, or of a text that is given as one, by what
// the node knows. It looks at one series after another, in the caller's turn, beside other calls, and ends
// after the first 100 numbers.
func (n *numbers) FindNumbers(ctx context.Context, req *idnodev1.WhoHasRequest) ([]FoundNumber, error) {
	return admission.Call(ctx, n.Control, "FindNumbers", req, n.findNumbers)
}

func (n *numbers) findNumbers(ctx context.Context, req *idnodev1.WhoHasRequest) (all []FoundNumber, err error) {
	database, err := databaseKey(req.GetDatabase())
	if err != nil {
		return nil, err
	}
	end, err := n.AwaitTurn(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if _, err := n.settleFor(ctx, idnodev1.Consistency_CONSISTENCY_STALE, database, rights.Further); err != nil {
		return nil, err
	}
	for after, last := "", false; !last && len(all) < mostFound; {
		some := n.state.SeriesList(database, "", after, askedAtOnce)
		for _, s := range some {
			n.state.ReadSeries(database, s.Name, func(_ fsm.NamedSeries, is *series.Series) {
				if number := numberIn(is.At(time.Now().UnixNano()), req.GetKey()); number != nil {
					all = append(all, FoundNumber{s.Name, numberMessage(number)})
				}
			})
			after = s.Name
			if len(all) == mostFound {
				break
			}
		}
		if last = len(some) < askedAtOnce; !last && ctx.Err() != nil {
			return nil, apierror.Unavailable(apierror.ReasonOverloaded, "the time of the call ended before all series were asked",
				apierror.RetryBusy, ctx.Err())
		}
	}
	return all, nil
}

// numberIn returns the number that a key has, or that has this text; nil if there is none.
func numberIn(v *series.View, of string) *raftlogv1.SeriesNumber {
	if number, found := v.WhoHas(of); found {
		return number
	}
	if number, found, err := v.Find(of); found && err == nil {
		return number
	}
	return nil
}
