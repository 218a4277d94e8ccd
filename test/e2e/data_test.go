package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/test/compat"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// oldCluster has its addresses in the data of the release, so they are the same in every run.
type oldCluster struct {
	dir   string
	nodes []*harness.Process
}

var oldTags = []string{"A", "B", "C"}

func oldAddress(tag, port string) string { return fmt.Sprintf("127.93.17.%d:%s", tag[0]-'A'+1, port) }

func (c *oldCluster) start(t *testing.T) {
	t.Helper()
	var peers []string
	for _, tag := range oldTags {
		peers = append(peers, tag+"="+oldAddress(tag, "7400"))
	}
	c.nodes = nil
	for _, tag := range oldTags {
		c.nodes = append(c.nodes, harness.StartProcess(t, filepath.Join(t.TempDir(), tag+".log"), "serve", "--tag", tag,
			"--data-dir", filepath.Join(c.dir, tag), "--audit", filepath.Join(c.dir, tag, "audit.log"), "--peer", strings.Join(peers, ","),
			"--grpc", oldAddress(tag, "7400"), "--raft", oldAddress(tag, "7401"), "--http", oldAddress(tag, "7402")))
	}
	harness.Eventually(t, 60*time.Second, "a cluster of the release's data", func(ctx context.Context) error {
		for _, tag := range oldTags {
			if err := harness.Command(t, "health", "--endpoint", oldAddress(tag, "7400")).Run(); err != nil {
				return err
			}
		}
		return nil
	})
}

// stop ends the nodes, as an upgrade does.
func (c *oldCluster) stop(t *testing.T) {
	t.Helper()
	for _, n := range c.nodes {
		n.Stop(t)
	}
}

// run runs a command against the cluster and returns what it printed.
func (c *oldCluster) run(t *testing.T, command string) string {
	t.Helper()
	cmd := harness.Command(t, strings.Fields(command)...)
	cmd.Dir = c.dir
	cmd.Env = append(cmd.Env, "IDNODE_ENDPOINTS="+oldAddress("A", "7400")+","+oldAddress("B", "7400")+","+oldAddress("C", "7400"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// oldCommands leave something of each kind in the data.
var oldCommands = []string{
	"next invoices| --count 3", "next users/", "next users/ayende --claim", "claim rooms/12", "release rooms/12 --yes",
	"identity seed orders 500", "hilo next users", "hilo set old 4096 --expected 0", "next invoices| --database other",
	"series define books --format B-{number:4}", "series take books --key one", "series take books --key two",
	"series confirm books --key one", "series void books --key two --reason torn --yes",
	"snowflake define events", "snowflake next events", "cluster set max-claims 1000 --yes", "cluster join-token",
}

// TestDataKept starts three nodes from the data of a release. They have all counters and numbers of it, count on, and
// what the release wrote for people can be read: backup, export, audit log.
func TestDataKept(t *testing.T) {
	tier.Long(t)
	needPrograms(t, "tar", "gzip")
	c := &oldCluster{dir: t.TempDir()}
	if compat.Golden() {
		c.write(t)
		c.dir = t.TempDir()
	}
	untar := exec.CommandContext(t.Context(), "tar", "-xz", "-C", c.dir)
	untar.Stdin = bytes.NewReader(compat.File(t, compat.Data, "data.tar.gz", nil))
	if out, err := untar.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, tag := range oldTags {
		c.run(t, "log verify "+tag)
	}
	c.start(t)
	for name, form := range map[string]string{"export.csv": "", "series.csv": " --form series"} {
		c.run(t, "export now.csv"+form)
		old, now := readFile(t, c.dir, name), readFile(t, c.dir, "now.csv")
		if old != now {
			t.Errorf("%q would be broken: %s was\n%s\nand is\n%s", compat.Data, name, old, now)
		}
		if err := os.Remove(filepath.Join(c.dir, "now.csv")); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.TrimSpace(c.run(t, "next invoices|")); got != "invoices/4" {
		t.Errorf("the next number is %s", got)
	}
	if got := strings.TrimSpace(c.run(t, "hilo next users --output json")); !strings.Contains(got, `"low":"33"`) {
		t.Errorf("the next range is %s", got)
	}
	c.run(t, "backup inspect all.backup")
	c.run(t, "restore all.backup --yes")
	c.run(t, "audit verify A/audit.log")
	c.stop(t)
}

// write makes the data of the release.
func (c *oldCluster) write(t *testing.T) {
	t.Helper()
	for _, tag := range oldTags {
		if err := os.Mkdir(filepath.Join(c.dir, tag), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	c.start(t)
	for _, command := range oldCommands {
		c.run(t, command)
	}
	c.run(t, "backup all.backup")
	c.run(t, "export export.csv")
	c.run(t, "export series.csv --form series")
	c.stop(t)
	packed, err := exec.CommandContext(t.Context(), "tar", "-cz", "-C", c.dir, ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	compat.File(t, compat.Data, "data.tar.gz", packed)
}

func readFile(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
