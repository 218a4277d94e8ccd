package e2e

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	goclient "github.com/idnode/idnode/client"
	"github.com/idnode/idnode/test/e2e/harness"
)

// TestClientOfTwoClusters has one client of two clusters: each database is in its own
// alone, and when one cluster is killed the calls of the other go on.
func TestClientOfTwoClusters(t *testing.T) {
	t.Parallel()
	home, east := harness.StartCluster(t, harness.Config{}), harness.StartCluster(t, harness.Config{Size: 1})
	c, err := goclient.New(t.Context(), goclient.Config{
		Endpoints: []string{home.Nodes[0].GRPC}, Timeout: 5 * time.Second, // The others are found through it.
		Clusters: []goclient.Cluster{{Endpoints: []string{east.Nodes[0].GRPC}, Databases: []string{"shop"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer closeClient(t, c)
	for _, database := range []string{"books", "shop"} {
		in := goclient.WithDatabase(database)
		id, err := c.Next(t.Context(), "orders|", in)
		_, err2 := c.Next(t.Context(), "users/", in)
		_, err3 := c.HiLo("users", in).NextID(t.Context())
		if err := errors.Join(err, err2, err3); err != nil || id != "orders/1" {
			t.Errorf("%s: %q, %v", database, id, err)
		}
	}
	for database, nodes := range map[string][2]*harness.Node{
		"books": {home.Nodes[0], east.Nodes[0]}, "shop": {east.Nodes[0], home.Nodes[0]},
	} {
		own, other := newClient(t, nodes[0]), newClient(t, nodes[1])
		if a, b := counters(t, own, database), counters(t, other, database); a != 2 || b != 0 {
			t.Errorf("%s has %d counters in its cluster and %d in the other", database, a, b)
		}
	}
	east.Nodes[0].Process.Kill()
	// The connection may end only after the call was sent.
	_, err = c.Next(t.Context(), "orders|", goclient.WithDatabase("shop"))
	if !errors.Is(err, goclient.ErrNoEndpoint) && !errors.Is(err, goclient.ErrOutcomeUnknown) {
		t.Errorf("the cluster that is down: %v", err)
	}
	if id, err := c.Next(t.Context(), "orders|", goclient.WithDatabase("books")); err != nil || id != "orders/2" {
		t.Errorf("the other cluster: %q, %v", id, err)
	}
	east.Nodes[0].Start(t)
	harness.Eventually(t, 15*time.Second, "the cluster gives ids again", func(ctx context.Context) error {
		_, err := c.Next(ctx, "orders|", goclient.WithDatabase("shop"))
		return err
	})
}

// counters counts the identities and the HiLo counters of a database.
func counters(t *testing.T, c *goclient.Client, database string) (n int) {
	t.Helper()
	for _, list := range []func(context.Context, string, ...goclient.Option) iter.Seq2[goclient.Counter, error]{c.Identities, c.HiLos} {
		for _, err := range list(t.Context(), "", goclient.WithDatabase(database)) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	return n
}
