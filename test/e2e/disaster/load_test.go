package disaster

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// callDeadline bounds each call of a load.
const callDeadline = 5 * time.Second

// load takes ids of all kinds, and records each in the ledger under its counter:
// "identity …", "hilo …" and "etag …".
type load struct {
	ledger *harness.Ledger
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu sync.Mutex
	// claims are the ids that were claimed for certain.
	claims map[string]bool
}

// names are the identities and tags of a load. The third is seldom used, so that
// a backup is likely not to know it.
var names = []string{"invoices", "orders"}

func startLoad(t testing.TB, ledger *harness.Ledger, who string, nodes ...*harness.Node) *load {
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{ledger: ledger, cancel: cancel, claims: map[string]bool{}}
	t.Cleanup(l.stop)
	for _, n := range nodes {
		for i, name := range names {
			l.work(ctx, fmt.Sprintf("%s, caller %d of %s", who, i, n.Tag), func(ctx context.Context, who string, round int) error {
				return l.step(ctx, n, name, who, round)
			})
		}
	}
	return l
}

// stop ends the load and waits for what is in flight. It may be called again.
func (l *load) stop() {
	l.cancel()
	l.all.Wait()
}

func (l *load) work(ctx context.Context, who string, step func(ctx context.Context, who string, round int) error) {
	l.all.Go(func() {
		for round := 0; ctx.Err() == nil; round++ {
			call, cancel := context.WithTimeout(context.Background(), callDeadline)
			err := step(call, who, round)
			cancel()
			pause := time.Millisecond
			if err != nil {
				pause = 20 * time.Millisecond // A node that refuses is not to be hammered.
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
}

// step makes one call of each kind. What a call that failed took is a hole.
func (l *load) step(ctx context.Context, n *harness.Node, name, who string, round int) error {
	if err := l.next(ctx, n, name, 1+int64(round%3), nil, who); err != nil {
		return err
	}
	if r, err := n.Ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: name, Size: 16}); err != nil {
		return err
	} else {
		l.ledger.Record("hilo "+name, who, r.GetLow(), r.GetHigh())
	}
	r, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: name + "/", Count: 3, BlocksOnly: true})
	if err != nil {
		return err
	}
	for _, b := range r.GetBlocks() {
		l.ledger.Record("etag "+name+b.GetSuffix(), who, b.GetFirst(), b.GetLast())
	}
	if round%10 != 0 {
		return nil
	}
	// A name of its own in each tenth round: a backup may not know it.
	if err := l.next(ctx, n, fmt.Sprintf("%s%d", name, round/10), 1, nil, who); err != nil {
		return err
	}
	return l.claim(ctx, n, fmt.Sprintf("docs/%s-%s-%d", name, n.Tag, round))
}

func (l *load) next(ctx context.Context, n *harness.Node, name string, count int64, id *idnodev1.RequestId, who string) error {
	r, err := n.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: name, Count: count, RequestId: id})
	for _, b := range r.GetBlocks() {
		l.ledger.Record("identity "+name, who, b.GetFirst(), b.GetLast())
	}
	return err
}

func (l *load) claim(ctx context.Context, n *harness.Node, id string) error {
	_, err := n.Ids.Claim(ctx, &idnodev1.ClaimRequest{Id: id})
	if err == nil {
		l.mu.Lock()
		l.claims[id] = true
		l.mu.Unlock()
	}
	return err
}

// claimed are the ids claimed so far.
func (l *load) claimed() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.claims)
}

// thick waits until the load has got so many more numbers of every name.
func (l *load) thick(t testing.TB, more int64) {
	t.Helper()
	before := map[string]int64{}
	for _, name := range names {
		before[name] = l.ledger.Count("identity " + name)
	}
	harness.Eventually(t, 30*time.Second, "thick traffic", func(context.Context) error {
		for name, had := range before {
			if got := l.ledger.Count("identity "+name) - had; got < more {
				return fmt.Errorf("%d of %s, want %d", got, name, more)
			}
		}
		return nil
	})
}

// stillClaimed checks that no other caller can have the ids.
func stillClaimed(t testing.TB, n *harness.Node, ids map[string]bool) {
	t.Helper()
	for id := range ids {
		if _, err := n.Ids.Claim(t.Context(), &idnodev1.ClaimRequest{Id: id}); status.Code(err) != codes.AlreadyExists {
			t.Errorf("%s was claimed, and can be claimed again: %v", id, err)
			return
		}
	}
}

// pairs takes values of two identities by turns, so that in every state the first
// is as high as the second, or one ahead.
func (l *load) pairs(ctx context.Context, n *harness.Node, failed *error) {
	l.all.Go(func() {
		for ctx.Err() == nil && *failed == nil {
			for _, name := range []string{"first", "second"} {
				call, cancel := context.WithTimeout(context.Background(), callDeadline)
				if err := l.next(call, n, name, 1, nil, "the pair"); err != nil {
					*failed = err
				}
				cancel()
			}
		}
	})
}
