package client_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/client/idnodev1"
)

// twoClusters returns a cluster for everything, which has the longer log, and another for the
// databases shop and till, and the configuration of a client of both.
func twoClusters(t *testing.T, cfg client.Config) (home, east *fakeCluster, _ client.Config) {
	t.Helper()
	home, east = named(t, "home", 2), named(t, "east", 1)
	home.mu.Lock()
	home.index = 5000
	home.mu.Unlock()
	cfg.Endpoints, cfg.ClusterID = home.addrs(), "home"
	cfg.Clusters = []client.Cluster{{Endpoints: east.addrs(), Databases: []string{"Shop", "till"}}}
	return home, east, cfg
}

// databases returns the databases that a cluster's nodes were asked about, each once.
func (c *fakeCluster) databases() (list []string) {
	for _, n := range c.nodes {
		for _, r := range n.requests() {
			list = append(list, r.(interface{ GetDatabase() string }).GetDatabase())
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// returns counts the ranges that were given back.
func (c *fakeCluster) returns() (n int) {
	for _, node := range c.nodes {
		for _, r := range node.requests() {
			if _, ok := r.(*idnodev1.ReturnRangeRequest); ok {
				n++
			}
		}
	}
	return n
}

// TestCallsGoToTheClusterOfTheirDatabase: every kind of call, and what a closed client
// gives back.
func TestCallsGoToTheClusterOfTheirDatabase(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		home, east, cfg := twoClusters(t, cfg)
		c, ctx := connect(t, cfg), t.Context()
		for _, database := range []string{"", "books", "SHOP", "till"} {
			in := client.WithDatabase(database)
			_, err1 := c.Next(ctx, "users/", in)
			_, err2 := c.Next(ctx, "orders|", in)
			_, err3 := c.NextBlocks(ctx, "orders|", 10, in)
			_, err4 := c.Identity("orders", in).Get(ctx)
			_, err5 := c.HiLo("users", in).NextID(ctx)
			_, err6 := c.Series("bills", in).Take(ctx, client.NumberRequest{Keys: []string{"1"}})
			err7 := c.Claim(ctx, "users/ayende of "+database, in)
			_, err8 := c.WhoHolds(ctx, "users", 1, in)
			if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
				t.Errorf("%q: %v", database, err)
			}
		}
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
		if got := home.databases(); !slices.Equal(got, []string{"", "books"}) {
			t.Errorf("one cluster was asked about %q", got)
		}
		if got := east.databases(); !slices.Equal(got, []string{"SHOP", "till"}) {
			t.Errorf("the other cluster was asked about %q", got)
		}
		if a, b := home.returns(), east.returns(); a != 2 || b != 2 {
			t.Errorf("%d and %d ranges came back", a, b)
		}
	})
}

// TestTheClientsOwnDatabaseMayBeMapped: calls without an option, and ids by type, but for one with an option.
func TestTheClientsOwnDatabaseMayBeMapped(t *testing.T) {
	home, east, cfg := twoClusters(t, client.Config{Database: "shop"})
	c := connect(t, cfg)
	_, err := c.Next(t.Context(), "orders|")
	id, err2 := client.IDFor[Order](t.Context(), c)
	if err != nil || err2 != nil || id != "orders/1-A" || home.took() || !east.took() {
		t.Error(id, err, err2)
	}
	if id, err := client.IDFor[Order](t.Context(), c, client.WithDatabase("books")); err != nil || id != "orders/1-A" || !home.took() {
		t.Error(id, err)
	}
}

// TestAnIndexIsThatOfItsCluster: the index that a call names as known before its first try is
// never that of another cluster's log, even if callers shared the call.
func TestAnIndexIsThatOfItsCluster(t *testing.T) {
	_, east, cfg := twoClusters(t, client.Config{Database: "till"})
	c := crowdAt(t, east, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	wg := c.waiting(1, func() {
		_, err := c.client.Identity("orders").Next(ctx)
		failed <- err
	})
	second := c.release(nil)
	cancel()
	var e *client.Error
	if err := <-failed; !errors.As(err, &e) || e.RequestID.Since == 0 || e.RequestID.Since >= 5000 {
		t.Errorf("%v: %+v", err, e)
	}
	close(second.opened)
	wg.Wait()
	for _, r := range east.nodes[0].requests() {
		if since := r.(*idnodev1.NextIdentityRequest).GetRequestId().GetRetrySince(); since == 0 || since >= 5000 {
			t.Errorf("a call names index %d", since)
		}
	}
}

// TestOneClusterDown: its calls wait and fail, and those of the other do not wait for them.
func TestOneClusterDown(t *testing.T) {
	both(t, func(t *testing.T, cfg client.Config) {
		home, east, cfg := twoClusters(t, cfg)
		c := connect(t, cfg)
		arrived := make(chan struct{}, 1)
		for _, n := range home.nodes {
			n.hook(func(ctx context.Context, r proto.Message) error {
				select {
				case arrived <- struct{}{}:
				default:
				}
				return hang(ctx, r)
			}, nil)
		}
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() {
			_, err := c.Next(ctx, "orders|")
			failed <- err
		}()
		<-arrived
		for i := range 3 {
			if v, err := c.Identity("orders").Next(t.Context(), client.WithDatabase("shop")); err != nil || v != int64(i+1) {
				t.Error(v, err)
			}
		}
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if got := east.databases(); !slices.Equal(got, []string{"shop"}) {
			t.Errorf("the other cluster was asked about %q", got)
		}
	})
}

// TestAPinnedClusterIsThatOfItsDatabases: an endpoint that leads to another cluster gives
// nothing, and harms no other database.
func TestAPinnedClusterIsThatOfItsDatabases(t *testing.T) {
	_, east, cfg := twoClusters(t, client.Config{})
	cfg.Clusters[0].ClusterID = "west"
	c := connect(t, cfg)
	if _, err := c.Next(t.Context(), "orders|", client.WithDatabase("shop")); !errors.Is(err, client.ErrOtherCluster) || east.took() {
		t.Error(err)
	}
	if _, err := c.Next(t.Context(), "orders|"); err != nil {
		t.Error(err)
	}
}

// TestClustersAreChecked: the error names the field.
func TestClustersAreChecked(t *testing.T) {
	home := client.Config{Endpoints: []string{"a:1", "a:1"}, ClusterID: "home"}
	east := client.Cluster{Endpoints: []string{"b:1"}, Databases: []string{"shop"}}
	for field, clusters := range map[string][]client.Cluster{
		"Clusters[0].Endpoints:":    {{Databases: []string{"shop"}}},
		"Clusters[0].Endpoints[1]:": {{Endpoints: []string{"b:1", "nowhere"}, Databases: []string{"shop"}}},
		"Clusters[1].Endpoints[0]:": {east, {Endpoints: []string{"b:1"}, Databases: []string{"till"}}},
		"Clusters[0].Endpoints[0]:": {{Endpoints: []string{"a:1"}, Databases: []string{"till"}}},
		"Clusters[1].ClusterID:":    {east, {Endpoints: []string{"c:1"}, ClusterID: "home", Databases: []string{"till"}}},
		"Clusters[1].Databases:":    {east, {Endpoints: []string{"c:1"}}},
		"Clusters[1].Databases[1]:": {east, {Endpoints: []string{"c:1"}, Databases: []string{"till", "SHOP"}}},
		"Clusters[0].Databases[2]:": {{Endpoints: []string{"b:1"}, Databases: []string{"", "x", "default"}}},
		"Clusters[0].Databases[0]:": {{Endpoints: []string{"b:1"}, Databases: []string{"a/b"}}},
	} {
		cfg := home
		cfg.Clusters = clusters
		if _, err := client.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	for field, cfg := range map[string]client.Config{
		"Config.Endpoints:": {}, "Config.Endpoints[0]:": {Endpoints: []string{"nowhere"}},
	} {
		if _, err := client.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
