package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
)

// webClient makes HTTP calls as RavenDB's client libraries do. It prefers the first
// node of the topology that has not failed, takes 408, 502, 503, 504 and a broken
// connection for a failed node, and comes back to one that is healthy again. It
// takes over a topology only if its etag is higher.
type webClient struct {
	http  *http.Client
	nodes []webNode
	etag  int64
	// failed has the URLs of nodes that are avoided.
	failed map[string]bool
	// stale says that a node has told of a newer topology.
	stale bool
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
	c.updateTopology(t)
	if c.etag < 1 || len(c.nodes) != 3 {
		t.Fatalf("topology %+v of etag %d", c.nodes, c.etag)
	}
	return c
}

// updateTopology asks the node that is preferred now.
func (c *webClient) updateTopology(t *testing.T) {
	t.Helper()
	var topology struct {
		Nodes []webNode
		Etag  int64
	}
	c.call(t, http.MethodGet, "/topology?name=default", &topology)
	if topology.Etag > c.etag {
		c.nodes, c.etag, c.failed = topology.Nodes, topology.Etag, nil
	}
}

// call sends a request to the first node that does not fail, again and again
// for as long as all of them do, and decodes the answer into result.
func (c *webClient) call(t *testing.T, method, target string, result any) webNode {
	t.Helper()
	var served webNode
	harness.Eventually(t, 20*time.Second, method+" "+target, func(ctx context.Context) error {
		err := errors.New("all nodes have failed")
		for _, node := range c.nodes {
			if c.failed[node.URL] {
				continue
			}
			var body []byte
			if body, err = c.send(ctx, t, method, node.URL+target); err == nil {
				served = node
				if result == nil {
					return nil
				}
				return json.Unmarshal(body, result)
			}
			c.fail(node)
		}
		c.failed = nil
		return err
	})
	if c.stale {
		c.stale = false
		c.updateTopology(t)
	}
	return served
}

func (c *webClient) fail(node webNode) {
	if c.failed == nil {
		c.failed = map[string]bool{}
	}
	c.failed[node.URL] = true
}

// awaitHealth checks failed nodes until all are healthy.
func (c *webClient) awaitHealth(t *testing.T) {
	t.Helper()
	harness.Eventually(t, 20*time.Second, "all nodes are healthy", func(ctx context.Context) error {
		for url := range c.failed {
			body, err := c.send(ctx, t, http.MethodGet, url+"/databases/default/healthcheck")
			if err != nil {
				return err
			}
			if len(body) > 0 {
				t.Fatalf("a health check with a body, which the Node.js client takes for an error: %q", body)
			}
			delete(c.failed, url)
		}
		return nil
	})
}

// send returns an error if the node failed.
func (c *webClient) send(ctx context.Context, t *testing.T, method, target string) ([]byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.etag > 0 {
		req.Header.Set("Topology-Etag", fmt.Sprintf("%q", fmt.Sprint(c.etag)))
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
	c.stale = c.stale || res.Header.Get("Refresh-Topology") == "true"
	return body, nil
}
