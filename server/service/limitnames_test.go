package service

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/test/fsmtest"
)

// makers are the ways in which a caller brings a name into being.
var makers = map[string]func(ctx context.Context, n node, name string) error{
	"identity": func(ctx context.Context, n node, name string) error {
		_, err := n.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: name})
		return err
	},
	"identities": func(ctx context.Context, n node, name string) error {
		_, errs := n.NextIdentities(ctx, []*idnodev1.NextIdentityRequest{{Name: name}})
		return errs[0]
	},
	"template": func(ctx context.Context, n node, name string) error {
		_, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: name + "|"})
		return err
	},
	"seed": func(ctx context.Context, n node, name string) error {
		_, err := n.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: name, Value: proto.Int64(1)})
		return err
	},
	"range": func(ctx context.Context, n node, name string) error {
		_, err := n.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: name})
		return err
	},
	"counter": func(ctx context.Context, n node, name string) error {
		_, err := n.SetHiLo(ctx, &idnodev1.SetHiLoRequest{Tag: name, Max: 1})
		return err
	},
	"claim": func(ctx context.Context, n node, name string) error {
		_, err := n.Claim(ctx, &idnodev1.ClaimRequest{Id: name})
		return err
	},
	"claimed": func(ctx context.Context, n node, name string) error {
		_, err := n.Generate(ctx, &idnodev1.GenerateRequest{Template: name, Claim: true})
		return err
	},
	"database": func(ctx context.Context, n node, name string) error {
		_, err := n.Generate(ctx, &idnodev1.GenerateRequest{Database: name, Template: "orders/"})
		return err
	},
	"block": func(ctx context.Context, n node, name string) error {
		return n.StreamServerSideIds(ctx, &idnodev1.StreamServerSideIdsRequest{Database: name, Template: "orders/", Count: 1},
			func(*idnodev1.StreamServerSideIdsResponse) error { return nil })
	},
}

// beyondLimit reports whether a call was refused for a limit of its caller.
func beyondLimit(err error) bool {
	var e *apierror.Error
	return errors.As(err, &e) && e.Reason == apierror.ReasonRateLimited
}

// TestNewNamesOfACaller: beyond the limit they are refused, in each way to make one, before
// anything is proposed. Names that are there already are not, whoever made them.
func TestNewNamesOfACaller(t *testing.T) {
	for what, ask := range makers {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			n := newNode(t, w, nil)
			limits(t, n, rights.Limit{Principals: []string{"shop"}, NewNamesPerHour: 3})
			for _, name := range []string{"one", "two", "three"} {
				if err := ask(as("shop"), n, name); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			before := w.Proposals()
			err := ask(as("shop"), n, "four")
			wantError(t, err, apierror.CodeResourceExhausted, apierror.ReasonRateLimited, "")
			if after := err.(*apierror.Error).RetryAfter; after < 15*time.Minute || after > 20*time.Minute {
				t.Errorf("to be tried again after %s", after)
			}
			if w.Proposals() != before {
				t.Error("a name beyond the limit was proposed")
			}
			for _, name := range []string{"one", "Two", "three"} {
				if err := ask(as("shop"), n, name); beyondLimit(err) {
					t.Errorf("%s again: %v", name, err)
				}
			}
			if err := ask(as("other"), n, "four"); err != nil {
				t.Errorf("another caller: %v", err)
			}
			if err := ask(as("shop"), n, "four"); beyondLimit(err) {
				t.Errorf("a name that another caller made: %v", err)
			}
			limits(t, n)
			if err := ask(as("shop"), n, "five"); err != nil {
				t.Errorf("without limits: %v", err)
			}
		})
	}
}

// TestNamesCountOnceTheNodeHasCaughtUp: a node that starts does not know yet which names are
// there, so it refuses none of the state's. The databases of its server-side ids are its own.
func TestNamesCountOnceTheNodeHasCaughtUp(t *testing.T) {
	for what, ask := range makers {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			started := true
			n := newNode(t, w, func(c *Config) { c.CaughtUp = func() bool { return started } })
			limits(t, n, rights.Limit{Principals: []string{"shop"}, NewNamesPerHour: 1})
			started = false
			ofState := what != "database" && what != "block"
			for i, name := range []string{"one", "two", "three"} {
				if err := ask(as("shop"), n, name); beyondLimit(err) != (!ofState && i > 0) {
					t.Errorf("%s, before the node has caught up: %v", name, err)
				}
			}
			started = true
			for i, name := range []string{"four", "five"} {
				if err := ask(as("shop"), n, name); beyondLimit(err) != (!ofState || i > 0) {
					t.Errorf("%s, afterwards: %v", name, err)
				}
			}
		})
	}
}

// TestWhatMakesNoNameIsNotLimited: ids that leave no name behind, and reads.
func TestWhatMakesNoNameIsNotLimited(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	limits(t, n, rights.Limit{Principals: []string{"shop"}, NewNamesPerHour: 1})
	ctx := as("shop")
	for i := range 5 {
		name := "n" + strconv.Itoa(i)
		for what, err := range map[string]error{
			"GUID": generate(ctx, n, "", false), "semantic id": generate(ctx, n, name, false), "server-side id": generate(ctx, n, name+"/", false),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := n.GetHiLo(ctx, &idnodev1.GetHiLoRequest{Tag: name}); beyondLimit(err) {
			t.Error(err)
		}
	}
}

// TestANewNameCountsOnce, however many calls ask for it before this node has learnt of it.
func TestANewNameCountsOnce(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	limits(t, n, rights.Limit{Principals: []string{"shop"}, NewNamesPerHour: 1})
	release := make(chan struct{})
	w.Set(func(f *fsmtest.Faults) { f.Gate = release })
	const calls = 20
	errs := make(chan error, calls)
	var callers sync.WaitGroup
	for range calls {
		callers.Go(func() {
			_, err := n.NextIdentity(as("shop"), &idnodev1.NextIdentityRequest{Name: "orders"})
			errs <- err
		})
	}
	for w.Held() < calls && len(errs) == 0 {
		runtime.Gosched()
	}
	close(release)
	callers.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}
