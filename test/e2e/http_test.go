package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
)

// webClient makes HTTP calls as RavenDB's client libraries do: it takes the
// topology from the node it is given, stays with the first node of it that
// works, and takes 408, 502, 503, 504 and a broken connection for a failed node.
type webClient struct {
	http  *http.Client
	nodes []webNode
}

type webNode struct {
	URL        string `json:"Url"`
	ClusterTag string
}

// newWebClient returns a client that shows the client certificate of certs, if
// that is not empty.
func newWebClient(t *testing.T, certs, seed string) *webClient {
	t.Helper()
	transport := &http.Transport{}
	if certs != "" {
		transport.TLSClientConfig = harness.ClientTLS(t, certs, "client")
	}
	t.Cleanup(transport.CloseIdleConnections)
	c := &webClient{http: &http.Client{Transport: transport, Timeout: 5 * time.Second}, nodes: []webNode{{URL: seed}}}
	var topology struct {
		Nodes []webNode
		Etag  int64
	}
	c.call(t, http.MethodGet, "/topology?name=default", &topology)
	if topology.Etag < 1 || len(topology.Nodes) != 3 {
		t.Fatalf("topology %+v", topology)
	}
	c.nodes = topology.Nodes
	return c
}

// call sends a request to the first node that does not fail, again and again
// for as long as all of them do, and decodes the answer into result.
func (c *webClient) call(t *testing.T, method, target string, result any) webNode {
	t.Helper()
	var served webNode
	harness.Eventually(t, 20*time.Second, method+" "+target, func(ctx context.Context) error {
		var err error
		for i, node := range c.nodes {
			var body []byte
			if body, err = c.send(ctx, t, method, node.URL+target); err == nil {
				c.nodes = append(c.nodes[i:len(c.nodes):len(c.nodes)], c.nodes[:i]...)
				served = node
				if result == nil {
					return nil
				}
				return json.Unmarshal(body, result)
			}
		}
		return err
	})
	return served
}

// send returns an error if the node failed.
func (c *webClient) send(ctx context.Context, t *testing.T, method, target string) ([]byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return nil, err
	case slices.Contains([]int{408, 502, 503, 504}, res.StatusCode):
		return nil, fmt.Errorf("%d: %s", res.StatusCode, body)
	case res.StatusCode >= 400:
		t.Fatalf("%s %s: %d: %s", method, target, res.StatusCode, body)
	}
	return body, nil
}

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

// nextIdentity takes a value under a request id, so that it counts once whatever
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
			leader := c.Leader(t)
			client := newWebClient(t, cfg.Certs, scheme+leader.HTTP)
			if client.nodes[0].URL != scheme+leader.HTTP {
				t.Errorf("the node asked does not come first: %+v", client.nodes)
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
					leader.Process.Kill()
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
	c := harness.StartCluster(t, harness.Config{})
	n := c.Nodes[0]
	client := newWebClient(t, "", "http://"+n.HTTP)
	target := "http://" + n.HTTP + "/databases/default/identity/next?name=invoices&raft-request-id=cut-off"
	c.Isolate(n)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if body, err := client.send(ctx, t, http.MethodPost, target); err == nil {
		t.Errorf("a node without a quorum gave %s", body)
	}
	if got := client.nextIdentity(t, "cut-off"); got != 1 || client.nodes[0].URL == "http://"+n.HTTP {
		t.Errorf("%d from %+v, want 1 from another node", got, client.nodes[0])
	}
	c.Heal()
	harness.Eventually(t, 20*time.Second, "the node is back", func(ctx context.Context) error {
		_, err := client.send(ctx, t, http.MethodGet, "http://"+n.HTTP+"/databases/default/stats")
		return err
	})
}
