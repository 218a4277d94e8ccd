package bench

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/pause"
)

const (
	// defineWithin bounds the wait for the series: a cluster that was just formed may have no
	// leader yet.
	defineWithin = 10 * time.Second
	definePause  = 50 * time.Millisecond
)

// defineSeries defines the series that the numbers are taken from.
func (c Config) defineSeries(ctx context.Context, conn grpc.ClientConnInterface) error {
	ctx, cancel := context.WithTimeout(ctx, defineWithin)
	defer cancel()
	for n := range c.Names {
		req := &idnodev1.DefineSeriesRequest{
			Database: c.Database, Name: fmt.Sprintf("%s%d", c.Prefix, n), Definition: &idnodev1.SeriesDefinition{Format: "{number}"},
		}
		for {
			_, err := idnodev1.NewSeriesServiceClient(conn).DefineSeries(ctx, req)
			if err == nil {
				break
			}
			if status.Code(err) != codes.Unavailable || !pause.For(ctx, definePause) {
				return fmt.Errorf("no series could be defined: %w", err)
			}
		}
	}
	return nil
}

// takeNumbers is the call that is measured, in whichever way it is made.
type takeNumbers func(context.Context, *idnodev1.TakeNumbersRequest, ...grpc.CallOption) (*idnodev1.TakeNumbersResponse, error)

// series takes numbers, each call for unused keys.
func (c Config) series(take takeNumbers) taker {
	return func(ctx context.Context, caller, i int) (taken []block, err error) {
		name, number := c.name(caller, i)
		keys := make([]string, c.Batch)
		for n := range keys {
			keys[n] = fmt.Sprintf("document-%d-%d-%d", caller, i, n)
		}
		r, err := take(ctx, &idnodev1.TakeNumbersRequest{Database: c.Database, Series: name, Keys: keys})
		for _, n := range r.GetNumbers() {
			taken = append(taken, block{number, n.GetNumber(), n.GetNumber()})
		}
		return taken, err
	}
}
