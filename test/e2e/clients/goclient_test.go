package clients

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/client"
)

// callGo makes the calls of a case with the Go client.
func callGo(t *testing.T, endpoints []string, c testCase) []outcome {
	t.Helper()
	// Unshared, because the script answers calls and not streams.
	cl, err := client.New(t.Context(), client.Config{
		Endpoints: endpoints, ClusterID: c.Options.ClusterID, Unshared: true,
		Timeout:    time.Duration(c.Options.TimeoutMs) * time.Millisecond,
		TryTimeout: time.Duration(c.Options.TryTimeoutMs) * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []outcome
	var failed client.Error
	for _, call := range c.Calls {
		values, err := goCall(t.Context(), cl, call, goOptions(call.Args, failed))
		if e := new(client.Error); errors.As(err, &e) {
			failed = *e
		}
		got = append(got, outcome{Values: values, Error: goFailure(err), Cause: errors.Unwrap(err) != nil})
	}
	if err := cl.Close(t.Context()); err != nil {
		t.Errorf("closing: %v", err)
	}
	return got
}

func goCall(ctx context.Context, cl *client.Client, c call, opts []client.Option) ([]string, error) {
	a := c.Args
	n := max(a.N, 1)
	switch c.Call {
	case "next":
		return cl.NextN(ctx, a.Template, n, opts...)
	case "identity.next":
		blocks, err := cl.Identity(a.Name).NextN(ctx, n, opts...)
		var values []string
		for _, b := range blocks {
			for i := range b.Last - b.First + 1 {
				values = append(values, number(b.First+i))
			}
		}
		return values, err
	case "identity.get":
		v, err := cl.Identity(a.Name).Get(ctx)
		return one(v, err)
	case "identity.seed":
		value, err := strconv.ParseInt(a.Value, 10, 64)
		if err != nil {
			return nil, err
		}
		return one(cl.Identity(a.Name).Seed(ctx, value, opts...))
	case "identity.delete":
		return one(cl.Identity(a.Name).Delete(ctx, opts...))
	case "identities":
		return all(cl.Identities(ctx, a.Prefix), func(c client.Counter) string { return c.Name + "=" + number(c.Value) })
	case "claim":
		return nil, cl.Claim(ctx, a.ID, opts...)
	case "release":
		return nil, cl.Release(ctx, a.ID, opts...)
	case "claims":
		return all(cl.Claims(ctx, a.Prefix), func(id string) string { return id })
	case "hilo":
		return cl.HiLo(a.Tag, opts...).NextIDs(ctx, n)
	case "snowflake.next":
		ids, err := cl.Snowflake(a.Name).NextN(ctx, n)
		var values []string
		for _, id := range ids {
			values = append(values, number(id))
		}
		return values, err
	case "snowflake.parse":
		return goParse(ctx, cl.Snowflake(a.Name), a.ID)
	case "snowflake.close":
		return nil, cl.Snowflake(a.Name).Close(ctx)
	case "series.take", "series.confirm", "series.confirmTaken", "series.void", "series.release", "series.find":
		numbers, err := goNumbers(ctx, cl.Series(a.Name), c)
		var told []string
		for _, n := range numbers {
			told = append(told, strings.TrimRight(fmt.Sprintf("%s %s %d %s %s", n.Key, n.Text, n.Number, n.State, n.Note), " "))
		}
		return told, err
	default:
		return nil, errors.New("there is no call " + c.Call)
	}
}

// goParse returns the parts of an id: milliseconds since 1970, worker and sequence.
func goParse(ctx context.Context, s *client.Snowflake, text string) ([]string, error) {
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, err
	}
	p, err := s.Parse(ctx, id)
	if err != nil {
		return nil, err
	}
	return []string{fmt.Sprint(p.Time.UnixMilli(), p.Worker, p.Sequence)}, nil
}

func goNumbers(ctx context.Context, series client.Series, c call) ([]client.DocumentNumber, error) {
	a := c.Args
	var numbers []client.DocumentNumber
	for _, key := range a.Keys {
		numbers = append(numbers, client.DocumentNumber{Key: key})
	}
	want := client.NumberRequest{Keys: a.Keys, Values: a.Values, Date: a.Date, Label: a.Label, Because: a.Because}
	want.ExpiresIn = time.Duration(a.ExpiresInMs) * time.Millisecond
	want.Number, _ = strconv.ParseInt(a.Number, 10, 64) // "" is none.
	switch c.Call {
	case "series.take":
		return series.Take(ctx, want)
	case "series.confirmTaken":
		taken, err := series.Take(ctx, want)
		if err != nil {
			return nil, err
		}
		return series.Confirm(ctx, taken)
	case "series.confirm":
		return series.Confirm(ctx, numbers)
	case "series.void":
		return series.Void(ctx, numbers, a.Reason)
	case "series.release":
		return series.Release(ctx, numbers)
	default:
		n, err := series.Find(ctx, a.Keys[0])
		if err != nil {
			return nil, err
		}
		return []client.DocumentNumber{n}, nil
	}
}

func goOptions(a args, failed client.Error) []client.Option {
	var opts []client.Option
	if a.Separator != "" {
		opts = append(opts, client.WithSeparator(a.Separator))
	}
	if a.RequestID != nil {
		opts = append(opts, client.WithRequestID(*a.RequestID))
	}
	if since, err := strconv.ParseUint(a.Since, 10, 64); err == nil {
		opts = append(opts, client.WithRetryOf(client.RequestID{ID: *a.RequestID, Since: since}))
	}
	if a.Again {
		opts = append(opts, client.WithRetryOf(failed.RequestID))
	}
	if a.Claim {
		opts = append(opts, client.WithClaim())
	}
	if a.Force {
		opts = append(opts, client.WithForce())
	}
	if a.Forget {
		opts = append(opts, client.WithForget())
	}
	if expected, err := strconv.ParseInt(a.Expected, 10, 64); err == nil {
		opts = append(opts, client.WithExpected(expected))
	}
	return opts
}

func number(v int64) string { return strconv.FormatInt(v, 10) }

func one(v int64, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	return []string{number(v)}, nil
}

func all[T any](list iter.Seq2[T, error], text func(T) string) ([]string, error) {
	var values []string
	for v, err := range list {
		if err != nil {
			return nil, err
		}
		values = append(values, text(v))
	}
	return values, nil
}

// goFailure names the first of these that an error is.
func goFailure(err error) *failure {
	if err == nil {
		return nil
	}
	got := &failure{Type: err.Error()}
	if e := new(client.Error); errors.As(err, &e) {
		got.Type, got.Reason, got.Field = "Idnode", e.Reason, e.Field
	}
	for _, kind := range []struct {
		err  error
		name string
	}{
		{client.ErrOutcomeUnknown, "OutcomeUnknown"},
		{client.ErrNoQuorum, "NoQuorum"},
		{client.ErrNoEndpoint, "NoEndpoint"},
		{client.ErrDeadline, "Deadline"},
		{client.ErrOtherCluster, "OtherCluster"},
		{client.ErrOverloaded, "Overloaded"},
		{client.ErrStorageFull, "StorageFull"},
		{client.ErrQuota, "Quota"},
		{client.ErrRateLimited, "RateLimited"},
		{client.ErrExhausted, "Exhausted"},
		{client.ErrConcurrency, "Concurrency"},
		{client.ErrIDClaimed, "IdClaimed"},
		{client.ErrRequestIDReused, "RequestIdReused"},
		{client.ErrRequestIDExpired, "RequestIdExpired"},
		{client.ErrPermissionDenied, "PermissionDenied"},
		{client.ErrKeyConflict, "KeyConflict"},
		{client.ErrSeriesSuspended, "SeriesSuspended"},
		{client.ErrReservationExpired, "ReservationExpired"},
		{client.ErrNotFound, "NotFound"},
		{client.ErrInvalid, "Invalid"},
		{client.ErrClosed, "Closed"},
	} {
		if errors.Is(err, kind.err) {
			got.Type = kind.name
			break
		}
	}
	return got
}
