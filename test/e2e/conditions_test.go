package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// membersAt is what `idnode cluster members -o json` shows at a node, by tag.
func membersAt(t *testing.T, certs string, n *harness.Node) (map[string]*idnodev1.Member, error) {
	t.Helper()
	out, err := harness.Command(t, "cluster", "members", "-o", "json", "--endpoint", n.GRPC,
		"--tls-ca", filepath.Join(certs, "ca.crt"), "--tls-cert", filepath.Join(certs, "client.crt"), "--tls-key", filepath.Join(certs,
			"client.key")).Output()
	if err != nil {
		return nil, err
	}
	members := map[string]*idnodev1.Member{}
	for line := range strings.Lines(string(out)) {
		m := &idnodev1.Member{}
		if err := protojson.Unmarshal([]byte(line), m); err != nil {
			return nil, fmt.Errorf("%w: %s", err, line)
		}
		members[m.Tag] = m
	}
	return members, nil
}

// TestMembersShowHowTheyAre: of three nodes one is killed and the disk of another is
// nearly full; whichever living one is asked shows both, and nothing about the one
// that does not answer.
func TestMembersShowHowTheyAre(t *testing.T) {
	tier.Long(t)
	certs := harness.Certificates(t, "A", "B", "C")
	c := harness.StartCluster(t, harness.Config{Certs: certs})
	lost, full, well := c.Nodes[0], c.Nodes[1], c.Nodes[2]
	nearlyFull(t, full)
	c.WaitReady(t)
	lost.Process.Kill()
	for _, asked := range []*harness.Node{full, well} {
		harness.Eventually(t, changed, "node "+asked.Tag+" shows how the members are", func(context.Context) error {
			members, err := membersAt(t, certs, asked)
			if err != nil {
				return err
			}
			var wrong error
			for _, n := range c.Nodes {
				m := members[n.Tag]
				alive := n != lost
				if m.GetReachable() != alive || (m.GetUnreachableFor().AsDuration() > 0) == alive || m.GetStorageFull() != (n == full) ||
					(m.GetVersion() != "") != alive || (m.GetCertificateExpiresAt() != nil) != alive || (m.GetAppliedIndex() > 0) != alive {
					wrong = errors.Join(wrong, fmt.Errorf("%s: %v", n.Tag, m))
				}
			}
			return wrong
		})
	}
}

// TestFullStorageIsSaid: a node whose disk is nearly full is ready, and says so in
// words: it must not be taken out of the balancer, nor restarted, for it.
func TestFullStorageIsSaid(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	n := c.Nodes[0]
	nearlyFull(t, n)
	n.WaitReady(t)
	harness.Eventually(t, changed, "full storage in words", func(context.Context) error {
		res, err := http.Get("http://" + n.HTTP + "/readyz")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), "ready\nwarning: the disk of "+n.Tag+" is nearly full") {
			return fmt.Errorf("%s %q: %v", res.Status, body, err)
		}
		return nil
	})
	for _, command := range [][]string{{"health"}, {"cluster", "status"}, {"cluster", "members"}} {
		out, err := idnode(t, c.Nodes[:1], command...)
		if err != nil || !strings.Contains(out, " full") {
			t.Errorf("%s: %v\n%s", strings.Join(command, " "), err, out)
		}
	}
}
