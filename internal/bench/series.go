package bench

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
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
			if status.Code(err) != codes.Unavailable {
				return fmt.Errorf("no series could be defined: %w", err)
			}
			select {
			case <-time.After(definePause):
			case <-ctx.Done():
				return fmt.Errorf("no series could be defined: %w", err)
			}
		}
	}
	return nil
}

// takeNumbers is the call that is measured: in whichever way, it returns the numbers.
type takeNumbers func(ctx context.Context, series string, keys []string) ([]int64, error)

func (c Config) unaryNumbers(conn grpc.ClientConnInterface) takeNumbers {
	series := idnodev1.NewSeriesServiceClient(conn)
	return func(ctx context.Context, name string, keys []string) (numbers []int64, err error) {
		r, err := series.TakeNumbers(ctx, &idnodev1.TakeNumbersRequest{Database: c.Database, Series: name, Keys: keys})
		for _, n := range r.GetNumbers() {
			numbers = append(numbers, n.GetNumber())
		}
		return numbers, err
	}
}

func (c Config) clientNumbers() takeNumbers {
	return func(ctx context.Context, name string, keys []string) (numbers []int64, err error) {
		all, err := c.Client.Series(name).Take(ctx, client.NumberRequest{Keys: keys})
		for _, n := range all {
			numbers = append(numbers, n.Number)
		}
		return numbers, err
	}
}

// series makes takers of numbers, each call for unused keys.
func (c Config) series(take takeNumbers) func(caller int) taker {
	return func(caller int) taker {
		return func(ctx context.Context, i int) ([]block, error) {
			name, number := c.name(caller, i)
			keys := make([]string, c.Batch)
			for n := range keys {
				keys[n] = fmt.Sprintf("document-%d-%d-%d", caller, i, n)
			}
			numbers, err := take(ctx, name, keys)
			taken := make([]block, len(numbers))
			for n, got := range numbers {
				taken[n] = block{number, got, got}
			}
			return taken, err
		}
	}
}
