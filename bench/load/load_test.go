package load

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

var short = Plan{WarmUp: 10 * time.Millisecond, Duration: 50 * time.Millisecond}

// four returns the same call for four callers.
func four(call Call) []Call { return []Call{call, call, call, call} }

func TestRunCountsWhatTheCallersDid(t *testing.T) {
	var last atomic.Int64
	r, err := Run(t.Context(), short, "count", four(func(context.Context) (int64, error) { return last.Add(1), nil }))
	if err != nil {
		t.Fatal(err)
	}
	counted := r.CallsPerS * r.Seconds
	if counted < 1 || counted > float64(last.Load()) || r.CallsPerS != r.IDsPerS {
		t.Errorf("%.0f of %d calls counted: %+v", counted, last.Load(), r)
	}
	if r.Op != "count" || r.Callers != 4 || r.Seconds < short.Duration.Seconds() || len(r.ErrorReasons) != 0 {
		t.Errorf("%+v", r)
	}
	if r.P50us < 1 || r.P99us < r.P50us || r.P999us < r.P99us || r.MaxUs < r.P999us {
		t.Errorf("quantiles out of order: %+v", r)
	}
}

func TestRunFindsAnIDThatCameTwice(t *testing.T) {
	var last atomic.Int64
	_, err := Run(t.Context(), short, "count", four(func(context.Context) (int64, error) {
		n := last.Add(1)
		return n - n%10/9, nil // Every ninth of ten repeats the one before it.
	}))
	if err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
}

func TestRunReportsFailures(t *testing.T) {
	var last atomic.Int64
	r, err := Run(t.Context(), short, "count", four(func(context.Context) (int64, error) {
		if n := last.Add(1); n%2 == 0 {
			return n, nil
		}
		return 0, errors.New("odd")
	}))
	if err != nil || r.ErrorReasons["odd"] == 0 || len(r.ErrorReasons) != 1 {
		t.Errorf("%+v %v", r.ErrorReasons, err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Run(ctx, Plan{Duration: time.Hour}, "count", []Call{func(context.Context) (int64, error) {
		cancel()
		return 1, nil
	}})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
