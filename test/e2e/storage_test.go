package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// noDiskIsThisFree is a mark that no disk is above: 2^50 bytes.
const noDiskIsThisFree = "1125899906842624"

// nearlyFull starts n again with a disk that counts as nearly full.
func nearlyFull(t *testing.T, n *harness.Node) {
	t.Helper()
	n.Process.Stop(t)
	n.Start(t, "--storage-low-mark", noDiskIsThisFree)
}

// storageFull waits until identities, ranges and claims are refused on n because
// a disk is nearly full, and checks that what needs no proposal goes on.
func storageFull(t *testing.T, n *harness.Node, ledger *harness.Ledger) {
	t.Helper()
	calls := map[string]func(context.Context) error{
		"identity": func(ctx context.Context) error {
			_, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "orders|"})
			return err
		},
		"range": func(ctx context.Context) error {
			_, err := n.Ids.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "full"})
			return err
		},
		"claim": func(ctx context.Context) error {
			_, err := n.Ids.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/full"})
			return err
		},
	}
	harness.Eventually(t, 10*time.Second, "no quorum of disks at node "+n.Tag, func(ctx context.Context) error {
		// Releasing what is not claimed changes nothing, whenever it is let through.
		_, err := n.Ids.Release(ctx, &idnodev1.ReleaseRequest{Id: "users/nobody"})
		if harness.Reason(err) != "STORAGE_FULL" {
			return fmt.Errorf("release: %w", err)
		}
		return nil
	})
	for what, call := range calls {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		err := call(ctx)
		cancel()
		if status.Code(err) != codes.ResourceExhausted || harness.Reason(err) != "STORAGE_FULL" {
			t.Errorf("%s on node %s with nearly full disks: %v", what, n.Tag, err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := n.Ids.GetIdentity(ctx, &idnodev1.GetIdentityRequest{Name: "orders"}); err != nil {
		t.Errorf("reading on node %s with nearly full disks: %v", n.Tag, err)
	}
	etags(t, n, ledger, 3)
	stillGives(t, n, ledger)
}

// TestInodesUsedUp: a disk without an inode is as one without room. The nodes go on, start
// again, and are whole when there are inodes.
func TestInodesUsedUp(t *testing.T) {
	tier.Long(t)
	c := harness.NewCluster(t, harness.Config{})
	for _, n := range c.Nodes {
		harness.SmallDisk(t, n.DataDir, "size=512m,nr_inodes=64")
		n.Start(t)
	}
	c.WaitReady(t)
	ledger := harness.NewLedger(t)
	last := take(t, c.Nodes[0], ledger, "orders")
	for _, n := range c.Nodes {
		useUpInodes(t, n.DataDir)
	}
	for _, n := range c.Nodes { // A leader that knows it first gives leadership to one that does not know it yet.
		harness.Eventually(t, 10*time.Second, "node "+n.Tag+" knows that disks are full", func(ctx context.Context) error {
			s, err := n.Cluster.GetStatus(ctx, &idnodev1.GetStatusRequest{})
			if err == nil && !s.GetStorageFull() {
				err = errors.New("there is room")
			}
			return err
		})
	}
	for _, n := range c.Nodes {
		storageFull(t, n, ledger)
	}
	for _, n := range c.Nodes {
		n.Process.Stop(t)
		n.Start(t)
	}
	for _, n := range c.Nodes {
		harness.Eventually(t, time.Minute, "a refusal by node "+n.Tag, func(ctx context.Context) error {
			_, err := n.Ids.Generate(ctx, &idnodev1.GenerateRequest{Template: "orders|"})
			if harness.Reason(err) != "STORAGE_FULL" {
				return fmt.Errorf("an identity: %w", err)
			}
			return nil
		})
		etags(t, n, ledger, 3)
	}
	for _, n := range c.Nodes {
		if err := os.RemoveAll(filepath.Join(n.DataDir, "others")); err != nil {
			t.Fatal(err)
		}
	}
	c.WaitReady(t)
	if v := take(t, c.Nodes[0], ledger, "orders"); v != last+1 {
		t.Errorf("orders/%d after %d", v, last)
	}
	c.Agree(t)
}

// useUpInodes makes files until there can be no more.
func useUpInodes(t *testing.T, dir string) {
	t.Helper()
	others := filepath.Join(dir, "others")
	err := os.Mkdir(others, 0o700)
	for i := 0; err == nil; i++ {
		err = os.WriteFile(filepath.Join(others, fmt.Sprint(i)), nil, 0o600)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
