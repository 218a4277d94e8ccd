package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// composeExec is what starting a program in a container may add to a bound.
const composeExec = 2 * time.Second

// inside takes ids of a template from inside a container and records their
// numbers. Where a node has just come back, it waits until it finds the leader:
// the names of other containers may take it some seconds.
func inside(t *testing.T, n *harness.Container, ledger *harness.Ledger, template string, count int) {
	t.Helper()
	var ids []string
	harness.Eventually(t, 15*time.Second, fmt.Sprintf("ids of %q in %s", template, n.Service), func(context.Context) error {
		out, stderr, code := n.Exec(t, "next", template, "--count", strconv.Itoa(count))
		ids = strings.Fields(out)
		if code != 0 || len(ids) != count {
			return fmt.Errorf("exit code %d, %d ids: %s", code, len(ids), stderr)
		}
		return nil
	})
	for _, id := range ids {
		name, number, _ := strings.Cut(id, "/")
		digits, tag, serverSide := strings.Cut(number, "-")
		if serverSide {
			name = "etags of " + tag
		}
		value, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || serverSide != strings.HasSuffix(template, "/") || (serverSide && tag != n.Tag) {
			t.Fatalf("next %q in %s gave %q: %v", template, n.Service, id, err)
		}
		ledger.Record(name, "inside "+n.Service, value, value)
	}
}

// awaitNoQuorum waits until a container that is cut off knows it. Before that, a
// call that is in flight ends with an unknown outcome.
func awaitNoQuorum(t *testing.T, n *harness.Container) {
	t.Helper()
	harness.Eventually(t, 5*time.Second, n.Service+" knows that it is cut off", func(context.Context) error {
		s, err := n.Status(t)
		if err == nil && s.HasQuorum {
			err = errors.New("it has a quorum")
		}
		return err
	})
}

// refusesInside checks that a container that is cut off says so, by exit code
// and reason, in bounded time, and gives what needs no quorum.
func refusesInside(t *testing.T, n *harness.Container, ledger *harness.Ledger) {
	t.Helper()
	for _, command := range [][]string{{"next", "orders|"}, {"hilo", "next", "orders"}, {"claim", "users/ayende"}} {
		begin := time.Now()
		_, stderr, code := n.Exec(t, command...)
		if took := time.Since(begin); took > leaderWait+slack+composeExec {
			t.Errorf("%v in the cut off %s took %s", command, n.Service, took)
		}
		if code != 3 || !strings.Contains(stderr, "NO_QUORUM") {
			t.Errorf("%v in the cut off %s: exit code %d, want 3 and NO_QUORUM: %s", command, n.Service, code, stderr)
		}
	}
	inside(t, n, ledger, "users/", 3)
	if out, stderr, code := n.Exec(t, "next", ""); code != 0 || len(strings.TrimSpace(out)) != 36 {
		t.Errorf("a GUID in the cut off %s: %q, exit code %d: %s", n.Service, out, code, stderr)
	}
	if _, _, code := n.Exec(t, "health", "--timeout", "2s"); code == 0 {
		t.Errorf("the cut off %s says it is healthy", n.Service)
	}
	if _, stderr, code := n.Exec(t, "health", "--service", "idnode.live", "--timeout", "2s"); code != 0 {
		t.Errorf("the cut off %s says it does not live: %s", n.Service, stderr)
	}
}

// everyoneGives takes every kind of number from inside every container.
func everyoneGives(t *testing.T, c *harness.Compose, ledger *harness.Ledger) {
	t.Helper()
	for _, n := range c.Containers {
		inside(t, n, ledger, "orders|", 3)
		inside(t, n, ledger, "users/", 3)
	}
}

// overHTTP takes a number through the published HTTP port.
func overHTTP(t *testing.T, certs string, n *harness.Node, ledger *harness.Ledger) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: harness.ClientTLS(t, certs, "client")}
	t.Cleanup(transport.CloseIdleConnections)
	c := &webClient{http: &http.Client{Transport: transport, Timeout: 5 * time.Second}, nodes: []webNode{{URL: "https://" + n.HTTP}}}
	var r struct{ NewIdentityValue int64 }
	c.call(t, http.MethodPost, "/databases/default/identity/next?name=orders", &r)
	ledger.Record("orders", "over HTTP from "+n.Tag, r.NewIdentityValue, r.NewIdentityValue)
}

func nodesOf(containers []*harness.Container) []*harness.Node {
	var nodes []*harness.Node
	for _, n := range containers {
		nodes = append(nodes, n.Node)
	}
	return nodes
}

// backupFromInside takes a backup as docs/operate/backups.md says: the image has no shell, and
// the file system is read-only.
func backupFromInside(t *testing.T, n *harness.Container) {
	t.Helper()
	out, stderr, code := n.Exec(t, "backup", "-")
	if code != 0 {
		t.Fatalf("backup in %s: exit code %d: %s", n.Service, code, stderr)
	}
	file := filepath.Join(t.TempDir(), "today.backup")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := harness.Command(t, "backup", "inspect", file).CombinedOutput(); err != nil {
		t.Errorf("the backup from %s: %v: %s", n.Service, err, out)
	}
}

// TestCompose runs deploy/docker-compose.yml, takes the leader off the network,
// puts nodes back at each other's addresses, kills a container, and removes its node,
// which the engine does not start again and again.
func TestCompose(t *testing.T) {
	tier.Long(t)
	c := harness.StartCompose(t)
	ledger := harness.NewLedger(t)
	leader, others := c.Leader(t, c.Containers...)
	for _, n := range c.Containers {
		take(t, n.Node, ledger, "orders") // from the host, through the published port
	}
	for _, n := range c.Containers {
		overHTTP(t, c.Certs, n.Node, ledger)
	}
	everyoneGives(t, c, ledger)
	backupFromInside(t, c.Containers[0])

	load := harness.StartLoad(ledger, nodesOf(others), "orders", 4, 10*time.Second)
	defer load.Stop()
	settle(t, ledger)
	addresses := []netip.Addr{leader.Address(t), others[0].Address(t)}
	leader.Disconnect(t)
	c.Leader(t, others...)
	awaitNoQuorum(t, leader)
	refusesInside(t, leader, ledger)
	settle(t, ledger)
	load.Stop()
	noFailures(t, load)

	// A second one goes. The engine gives the lowest free address, so that they
	// come back at each other's if the one with the higher address comes first.
	second := others[0]
	second.Disconnect(t)
	awaitNoQuorum(t, others[1])
	refusesInside(t, others[1], ledger)
	back := []*harness.Container{second, leader}
	if addresses[1].Less(addresses[0]) {
		slices.Reverse(back)
	}
	healed := time.Now()
	for _, n := range back {
		n.Connect(t)
	}
	t.Logf("the old leader and the second were at %s, and are at %s and %s", addresses, leader.Address(t), second.Address(t))
	for _, n := range c.Containers {
		n.WaitHealthy(t)
	}
	everyoneGives(t, c, ledger)
	t.Logf("everyone gives ids %s after the first was back", time.Since(healed).Round(time.Millisecond))
	c.Agree(t)

	killed, rest := c.Leader(t, c.Containers...)
	killed.Kill(t)
	c.Leader(t, rest...)
	for _, n := range rest {
		inside(t, n, ledger, "orders|", 3)
	}
	killed.StartAgain(t)
	killed.WaitHealthy(t)
	everyoneGives(t, c, ledger)
	take(t, killed.Node, ledger, "orders") // its published port is back
	c.Agree(t)

	c.Operator(t, rest[0], "cluster", "remove", killed.Tag, "--yes")
	killed.StaysDown(t, 1)
	killed.Restart(t)
	killed.StaysDown(t, 2)
}
