package node

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/idnode/idnode/server/service"
)

// TestCallsForAnotherCluster: over JSON and RavenDB's calls, a node names its cluster, and takes no
// call for another one.
func TestCallsForAnotherCluster(t *testing.T) {
	t.Parallel()
	n := run(t, configs(t, "A")["A"])
	n.ready()
	own := n.clusterID()
	for _, path := range []string{"/idnode.v1.IdsService/NextIdentity", "/databases/default/identity/next?name=invoices"} {
		for id, served := range map[string]bool{"": true, own: true, strings.Repeat("0", 32): false} {
			req, err := http.NewRequest(http.MethodPost, n.url+path, strings.NewReader(`{"name":"invoices"}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			if id != "" {
				req.Header.Set(service.ClusterIDHeader, id)
			}
			res, err := n.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil || served != (res.StatusCode == http.StatusOK) || served == strings.Contains(string(body), "OTHER_CLUSTER") ||
				res.Header.Get(service.ClusterIDHeader) != own {
				t.Errorf("%s for %q: %d %s %v", path, id, res.StatusCode, body, err)
			}
		}
	}
	res, err := n.client.Get(n.url + "/databases/default/debug/identities")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != `{"invoices|":4}` {
		t.Errorf("%s, %v: want what four calls took", body, err)
	}
}
