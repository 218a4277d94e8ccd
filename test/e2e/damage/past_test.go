package damage

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/test/e2e/harness"
)

// rounds is how often the cluster of a past loses its leader.
const rounds = 3

// past is what a cluster of three left on disk: the last state of each node's
// data directory, and older ones.
type past struct {
	Tags []string
	// Last has the last state by tag, Older the states before it, oldest first;
	// the newest of them is from the run that also left the last state.
	Last  map[string]string
	Older map[string][]string
	// Contents is what each last state says, as its node reads it.
	Contents map[string]string
}

// makePast lets a cluster live through loads, snapshots and lost leaders. One of
// its nodes is stopped in the end, and two are killed.
func makePast(t *testing.T) *past {
	t.Helper()
	p := &past{Last: map[string]string{}, Older: map[string][]string{}, Contents: map[string]string{}}
	c := harness.StartCluster(t, harness.Config{
		Tuning: failpoint.Tuning{SnapshotThreshold: 100, SnapshotInterval: 500 * time.Millisecond, TrailingLogs: 50},
	})
	ledger := harness.NewLedger(t)
	for range rounds {
		live(t, c, ledger)
		p.keep(t, c)
		leader := c.Leader(t)
		leader.Process.Kill()
		c.LeaderAmong(t, c.Others(leader))
		leader.Start(t)
		c.WaitReady(t)
	}
	live(t, c, ledger)
	p.keep(t, c)
	live(t, c, ledger)
	c.Nodes[2].Process.Stop(t)
	for _, n := range c.Nodes {
		n.Process.Kill()
		p.Tags = append(p.Tags, n.Tag)
		p.Last[n.Tag] = n.DataDir
		contents, err := p.contentsOf(copied(t, n.DataDir))
		if err != nil {
			t.Fatalf("node %s without damage: %v", n.Tag, err)
		}
		p.Contents[n.Tag] = contents
	}
	return p
}

// live puts every kind of id into the cluster, until there are entries enough
// for snapshots.
func live(t *testing.T, c *harness.Cluster, ledger *harness.Ledger) {
	t.Helper()
	load := harness.StartLoad(ledger, c.Nodes, "orders", 2, 10*time.Second)
	defer load.Stop()
	begin := index(t, c)
	for i, n := range c.Nodes {
		harness.Eventually(t, 20*time.Second, "ids of every kind", func(ctx context.Context) error {
			_, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "users/", Count: 100_000, BlocksOnly: true})
			if err == nil {
				_, err = n.Ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: fmt.Sprint("tag", i)})
			}
			return err
		})
	}
	harness.Eventually(t, 30*time.Second, "entries", func(context.Context) error {
		if got := index(t, c); got < begin+150 {
			return fmt.Errorf("%d of %d", got-begin, 150)
		}
		return nil
	})
}

func index(t *testing.T, c *harness.Cluster) (newest uint64) {
	t.Helper()
	for _, n := range c.Nodes {
		s, err := n.Cluster.GetStatus(t.Context(), &idnodev1.GetStatusRequest{})
		if err == nil {
			newest = max(newest, s.AppliedIndex)
		}
	}
	return newest
}

// keep keeps a copy of every node's data as it is at one moment.
func (p *past) keep(t *testing.T, c *harness.Cluster) {
	t.Helper()
	for _, n := range c.Nodes {
		p.Older[n.Tag] = append(p.Older[n.Tag], n.CopyData(t))
	}
}

// scratch is a folder in memory, where the system has one: syncs cost nothing
// there.
func scratch() string {
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		return "/dev/shm"
	}
	return ""
}

// copied returns a copy of a data directory, which is removed when the test ends.
func copied(t *testing.T, dir string) string {
	t.Helper()
	folder, err := os.MkdirTemp(scratch(), "idnode-damage-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	to := filepath.Join(folder, "data")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// filesOf lists the files of a data directory that have content, by their paths in it.
func filesOf(dir string) (files []string, err error) {
	err = fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && !strings.Contains(path, "permTest") && !strings.HasSuffix(path, ".tmp") {
			files = append(files, path)
		}
		return err
	})
	slices.Sort(files)
	return files, err
}

// snapshotsOf lists the snapshots of a data directory by name, newest first. Terms
// and indexes of a past have few enough digits to tell by length first.
func snapshotsOf(dir string) []string {
	names, _ := filepath.Glob(filepath.Join(dir, "snapshots", "*-*-*")) // The pattern is valid.
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasSuffix(name, ".tmp") })
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	slices.SortFunc(names, func(a, b string) int { return compareSnapshots(b, a) })
	return names
}

func compareSnapshots(a, b string) int {
	parse := func(name string) (n [3]uint64) {
		_, _ = fmt.Sscanf(name, "%d-%d-%d", &n[0], &n[1], &n[2]) // Others sort first.
		return n
	}
	x, y := parse(a), parse(b)
	return slices.Compare(x[:], y[:])
}

// counterpart is the file of another data directory, or of an older copy of the
// same one, that does what a file does in its own.
func counterpart(dir, file string) (string, bool) {
	path := filepath.Join(dir, file)
	if _, err := os.Stat(path); err == nil {
		return path, true
	}
	base, folder := filepath.Base(file), filepath.Dir(file)
	switch {
	case strings.HasPrefix(folder, "snapshots"):
		if names := snapshotsOf(dir); len(names) > 0 {
			return filepath.Join(dir, "snapshots", names[0], base), true
		}
	case folder == "log":
		if segments, _ := filepath.Glob(filepath.Join(dir, "log", "*"+filepath.Ext(base))); len(segments) > 0 {
			return segments[len(segments)-1], true
		}
	}
	return "", false
}
