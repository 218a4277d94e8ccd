package e2e

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// TestRevocation takes a caller's right away while it calls all nodes: what it was
// given has its place in the log before the revocation, through any node and with any
// knowledge of that node, and nothing comes after it.
func TestRevocation(t *testing.T) {
	t.Parallel()
	certs := harness.CertificatesWith(t, []string{"webshop"}, "A", "B", "C")
	c := harness.StartCluster(t, harness.Config{Certs: certs})
	operator := harness.Role("operator", "client", idnodev1.Right_RIGHT_CLUSTER)
	shop := harness.Role("shop", "webshop", idnodev1.Right_RIGHT_GENERATE)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var callers sync.WaitGroup
	var given, newest, denied atomic.Uint64
	for _, n := range c.Nodes {
		client := harness.DialAs(t, n.GRPC, certs, "webshop")
		for range 4 {
			callers.Go(func() {
				for ctx.Err() == nil {
					index, err := nextAs(client)
					switch {
					case err == nil:
						given.Add(1)
						raise(&newest, index)
					case harness.Reason(err) == "PERMISSION_DENIED":
						denied.Add(1)
					default:
						t.Errorf("a call ended with %v", err)
						return
					}
				}
			})
		}
	}
	for i := range 10 {
		n := c.Nodes[i%3]
		harness.SetRoles(t, n, operator, shop)
		awaitMore(t, &given, "ids")
		revoked := harness.SetRoles(t, n, operator)
		awaitMore(t, &denied, "denials")
		if last := newest.Load(); last > revoked {
			t.Errorf("the right was taken away at index %d, and used at %d", revoked, last)
		}
	}
	stop()
	callers.Wait()
	t.Logf("%d ids were given, %d calls denied", given.Load(), denied.Load())
	c.Agree(t)
}

// TestANodeNeedsAdministratorsOrRoles: with TLS it ends otherwise, when it is new at once,
// and else when it knows that there are no roles; each time with the exit code of wrong
// settings, and the setting named.
func TestANodeNeedsAdministratorsOrRoles(t *testing.T) {
	// Of a program that is named, the harness does not say who its administrators are.
	c := harness.NewCluster(t, harness.Config{Size: 1, Certs: harness.Certificates(t, "A"), Program: harness.Binary(t)})
	n := c.Nodes[0]
	ends := func() {
		t.Helper()
		n.Start(t)
		if code := n.Process.Wait(t, changed); code != 2 {
			t.Errorf("it ended with exit code %d, want 2", code)
		}
		if last := n.Process.Tail(1); !strings.Contains(last, "--admin '*'") {
			t.Errorf("its last line does not name the setting: %s", last)
		}
	}
	ends()
	n.Start(t, "--admin", "client")
	n.WaitReady(t)
	n.Process.Stop(t)
	ends()
	n.Start(t, "--admin", "client")
	n.WaitReady(t)
	harness.SetRoles(t, n, harness.Role("operator", "client", idnodev1.Right_RIGHT_CLUSTER))
	n.Process.Stop(t)
	n.Start(t)
	n.WaitReady(t)
}

// TestOpenStreamsLoseTheirRights: what is open when roles change is judged again, call by
// call and block by block.
func TestOpenStreamsLoseTheirRights(t *testing.T) {
	certs := harness.CertificatesWith(t, []string{"webshop"}, "A")
	c := harness.StartCluster(t, harness.Config{Size: 1, Certs: certs})
	n := c.Nodes[0]
	operator := harness.Role("operator", "client", idnodev1.Right_RIGHT_CLUSTER)
	harness.SetRoles(t, n, operator, harness.Role("shop", "webshop", idnodev1.Right_RIGHT_GENERATE))
	shop := harness.DialAs(t, n.GRPC, certs, "webshop")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	blocks, err := shop.Ids.StreamServerSideIds(ctx, &idnodev1.StreamServerSideIdsRequest{Template: "orders/"})
	if err != nil {
		t.Fatal(err)
	}
	calls, err := shop.Ids.Exchange(ctx)
	if err != nil {
		t.Fatal(err)
	}
	next := func() *idnodev1.Reply {
		t.Helper()
		call := &idnodev1.Call{Correlation: 1, Call: &idnodev1.Call_NextIdentity{NextIdentity: &idnodev1.NextIdentityRequest{Name: "orders"}}}
		if err := calls.Send(&idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{call}}); err != nil {
			t.Fatal(err)
		}
		r, err := calls.Recv()
		if err != nil || len(r.GetReplies()) != 1 {
			t.Fatalf("%v: %v", r, err)
		}
		return r.GetReplies()[0]
	}
	if _, err := blocks.Recv(); err != nil {
		t.Fatal(err)
	}
	if r := next(); r.GetNextIdentity() == nil {
		t.Fatalf("%v", r)
	}
	harness.SetRoles(t, n, operator)
	if r := next(); codes.Code(r.GetError().GetCode()) != codes.PermissionDenied {
		t.Errorf("on the open stream of calls: %v", r)
	}
	for err == nil {
		_, err = blocks.Recv() // Some were on their way.
	}
	if harness.Reason(err) != "PERMISSION_DENIED" {
		t.Errorf("the open stream of blocks ends with %v", err)
	}
}

// TestOpenStreamsEndWithTheCertificate: calls, blocks and silence alike, and the busy ones say why.
func TestOpenStreamsEndWithTheCertificate(t *testing.T) {
	t.Parallel()
	certs := harness.Certificates(t, "A")
	n := harness.StartCluster(t, harness.Config{Size: 1, Certs: certs}).Nodes[0]
	harness.SetRoles(t, n, harness.Role("operator", "client", idnodev1.Right_RIGHT_CLUSTER),
		harness.Role("shop", "webshop", idnodev1.Right_RIGHT_GENERATE))
	var end time.Time
	var calls, idle idnodev1.IdsService_ExchangeClient
	var blocks idnodev1.IdsService_StreamServerSideIdsClient
	for valid := 5 * time.Second; !time.Now().Before(end); valid *= 2 { // A busy machine may need longer to open them.
		end = time.Now().Add(valid).Truncate(time.Second)
		issue(t, certs, "webshop", x509.Certificate{DNSNames: []string{"webshop"}, NotAfter: end})
		shop := harness.DialAs(t, n.GRPC, certs, "webshop").Ids
		var failed [3]error
		calls, failed[0] = shop.Exchange(t.Context())
		idle, failed[1] = shop.Exchange(t.Context())
		blocks, failed[2] = shop.StreamServerSideIds(t.Context(), &idnodev1.StreamServerSideIdsRequest{Template: "orders/", BlockSize: 1})
		if err := errors.Join(failed[:]...); err != nil {
			t.Log(err)
			end = time.Time{}
		}
	}
	ended := func(next func() error) chan error {
		err := make(chan error, 1)
		go func() {
			for {
				if failed := next(); failed != nil {
					err <- failed
					return
				}
			}
		}()
		return err
	}
	call := &idnodev1.Call{Correlation: 1, Call: &idnodev1.Call_NextIdentity{NextIdentity: &idnodev1.NextIdentityRequest{Name: "orders"}}}
	for name, stream := range map[string]struct {
		ended chan error
		says  bool
	}{
		"calls": {ended(func() error {
			_ = calls.Send(&idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{call}}) // Recv has the cause.
			_, err := calls.Recv()
			return err
		}), true},
		"blocks":  {ended(func() error { _, err := blocks.Recv(); return err }), true},
		"silence": {ended(func() error { _, err := idle.Recv(); return err }), false},
	} {
		select {
		case err := <-stream.ended:
			if time.Now().Before(end) || stream.says && harness.Reason(err) != "CERTIFICATE_ENDED" {
				t.Errorf("%s ended at %s, the certificate at %s: %v", name, time.Now(), end, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s go on", name)
		}
	}
}

// nextAs takes a value and returns its place in the log.
func nextAs(c *harness.Client) (uint64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := c.Ids.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "orders"})
	return r.GetLogIndex(), err
}

// raise makes v the greater of both.
func raise(v *atomic.Uint64, to uint64) {
	for old := v.Load(); to > old && !v.CompareAndSwap(old, to); old = v.Load() {
	}
}

// awaitMore waits until enough more were counted that every node has had a part.
func awaitMore(t *testing.T, count *atomic.Uint64, what string) {
	t.Helper()
	before := count.Load()
	harness.Eventually(t, 15*time.Second, "more "+what, func(context.Context) error {
		if more := count.Load() - before; more < 200 {
			return fmt.Errorf("%d", more)
		}
		return nil
	})
}
