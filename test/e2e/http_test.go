package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// webRange is what hilo/next answers.
type webRange struct {
	Prefix              string
	Low, High, LastSize int64
	ServerTag           string
	LastRangeAt         string
}

// nextRange asks as a client does that had the range last.
func (c *webClient) nextRange(t *testing.T, last webRange) webRange {
	t.Helper()
	var r webRange
	node := c.call(t, http.MethodGet, fmt.Sprintf(
		"/databases/default/hilo/next?tag=users&lastBatchSize=%d&lastRangeAt=%s&identityPartsSeparator=/&lastMax=%d",
		last.LastSize, url.QueryEscape(last.LastRangeAt), last.High,
	), &r)
	if r.Prefix != "users/" || r.ServerTag != node.ClusterTag || r.Low <= last.High {
		t.Fatalf("after %+v node %s gave %+v", last, node.ClusterTag, r)
	}
	return r
}

// rangeFrom waits until the client, once all nodes are healthy, has its range from n.
// In an election under the call it flees to another.
func (c *webClient) rangeFrom(t *testing.T, n *harness.Node, last webRange) webRange {
	t.Helper()
	harness.Eventually(t, 20*time.Second, "a range from node "+n.Tag, func(context.Context) error {
		c.awaitHealth(t)
		if last = c.nextRange(t, last); last.ServerTag != n.Tag {
			return fmt.Errorf("%+v", last)
		}
		return nil
	})
	return last
}

// nextIdentity takes a value under a request id, so that it counts once with any
// node answers.
func (c *webClient) nextIdentity(t *testing.T, id string) int64 {
	t.Helper()
	var r struct{ NewIdentityValue int64 }
	c.call(t, http.MethodPost, "/databases/default/identity/next?name=invoices&raft-request-id="+url.QueryEscape(id), &r)
	return r.NewIdentityValue
}

// seedIdentity sets the last used value; more parameters may follow it.
func (c *webClient) seedIdentity(t *testing.T, value string) int64 {
	t.Helper()
	var r struct{ NewSeedValue int64 }
	c.call(t, http.MethodPost, "/databases/default/identity/seed?name=invoices&value="+value, &r)
	return r.NewSeedValue
}

// hiloMax loads a counter's document.
func (c *webClient) hiloMax(t *testing.T, tag string) int64 {
	t.Helper()
	var r struct{ Results []struct{ Max int64 } }
	c.call(t, http.MethodGet, "/databases/default/docs?id=Raven/Hilo/"+tag, &r)
	if len(r.Results) != 1 {
		t.Fatalf("documents %+v", r)
	}
	return r.Results[0].Max
}

// TestHTTPFailover uses a cluster as RavenDB's clients do, with and without TLS,
// while the node they stay with is killed: ranges grow, no value is missing, and
// what a closing client gives back is given to the next.
func TestHTTPFailover(t *testing.T) {
	for name, secured := range map[string]bool{"plain": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			cfg, scheme := harness.Config{}, "http://"
			if secured {
				cfg.Certs, scheme = certificates(t), "https://"
			}
			c := harness.StartCluster(t, cfg)
			client := newWebClient(t, cfg.Certs, scheme+c.Nodes[2].HTTP)
			preferred := c.Nodes[0]
			if client.nodes[0].URL != scheme+preferred.HTTP {
				t.Errorf("nodes are not in the order of tags: %+v", client.nodes)
			}
			var last webRange
			for _, size := range []int64{32, 64, 128} {
				if last = client.nextRange(t, last); last.LastSize != size {
					t.Fatalf("%+v, want the size %d", last, size)
				}
			}
			var want int64
			for range 10 {
				want++
				if got := client.nextIdentity(t, fmt.Sprintf("%s-%d", t.Name(), want)); got != want {
					t.Fatalf("identity %d, want %d", got, want)
				}
				if want == 5 {
					preferred.Process.Kill()
				}
			}
			last = client.nextRange(t, last)
			client.call(t, http.MethodPut, fmt.Sprintf("/databases/default/hilo/return?tag=users&end=%d&last=%d", last.High, last.Low), nil)
			if next := client.nextRange(t, webRange{}); next.Low != last.Low+1 {
				t.Errorf("after the return of %+v: %+v", last, next)
			}
			if max := client.hiloMax(t, "users"); max < last.Low+32 {
				t.Errorf("the counter's document says %d after %+v", max, last)
			}
			for _, seed := range []struct {
				value string
				want  int64
			}{{"1000", 1000}, {"5", 1000}, {"5&force=true", 5}} {
				if got := client.seedIdentity(t, seed.value); got != seed.want {
					t.Errorf("seeded with %s: %d, want %d", seed.value, got, seed.want)
				}
			}
			if got := client.nextIdentity(t, "after the seed"); got != 6 {
				t.Errorf("after the seed: %d, want 6", got)
			}
			var all map[string]int64
			client.call(t, http.MethodGet, "/databases/default/debug/identities", &all)
			if len(all) != 1 || all["invoices|"] != 6 {
				t.Errorf("identities %v, want invoices| at 6", all)
			}
		})
	}
}

// TestHTTPWithoutQuorum: a node that is cut off says so in time, in a way that
// sends clients on, and comes back.
func TestHTTPWithoutQuorum(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{})
	n := c.Nodes[0]
	sameTopology(t, c) // A newer one would have the client try all nodes again.
	client := newWebClient(t, "", "http://"+n.HTTP)
	target := "http://" + n.HTTP + "/databases/default/identity/next?name=invoices&raft-request-id=cut-off"
	c.Isolate(n)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if body, err := client.send(ctx, t, http.MethodPost, target); err == nil {
		t.Errorf("a node without a quorum gave %s", body)
	}
	if got := client.nextIdentity(t, "cut-off"); got != 1 || !client.failed["http://"+n.HTTP] {
		t.Errorf("%d, failed %v, want 1 from another node", got, client.failed)
	}
	for _, health := range []string{"/databases/default/stats", "/databases/default/healthcheck"} {
		if body, err := client.send(ctx, t, http.MethodGet, "http://"+n.HTTP+health); err == nil {
			t.Errorf("a node without a quorum is healthy: %s", body)
		}
	}
	c.Heal()
	client.awaitHealth(t)
}

// TestHTTPTopologyIsTheSameOnAllNodes: a client that fled to another node takes
// nothing else from it, and returns to its own node when that is back. A start that
// changes no address is no change of the topology.
func TestHTTPTopologyIsTheSameOnAllNodes(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	preferred := c.Nodes[0]
	before := sameTopology(t, c)
	client := newWebClient(t, "", "http://"+c.Nodes[1].HTTP)
	last := client.rangeFrom(t, preferred, webRange{}) // The first node of the topology.
	preferred.Process.Kill()
	if last = client.nextRange(t, last); last.ServerTag == preferred.Tag {
		t.Fatalf("%+v from a node that is down", last)
	}
	client.updateTopology(t) // As clients do from time to time, from the node that works.
	preferred.Start(t)
	c.WaitReady(t)
	if after := sameTopology(t, c); after != before {
		t.Errorf("the topology was\n%s\nand is\n%s", before, after)
	}
	client.rangeFrom(t, preferred, last)
}

// sameTopology waits until all nodes say the same, and returns it.
func sameTopology(t *testing.T, c *harness.Cluster) (topology string) {
	t.Helper()
	client := &webClient{http: &http.Client{Timeout: 5 * time.Second}}
	t.Cleanup(client.http.CloseIdleConnections)
	harness.Eventually(t, 20*time.Second, "one topology on all nodes", func(ctx context.Context) error {
		said := map[string]bool{}
		for _, n := range c.Nodes {
			body, err := client.send(ctx, t, http.MethodGet, "http://"+n.HTTP+"/topology?name=default")
			if err != nil {
				return err
			}
			topology = string(body)
			said[topology] = true
		}
		if len(said) != 1 {
			return fmt.Errorf("topologies: %v", said)
		}
		return nil
	})
	return topology
}
