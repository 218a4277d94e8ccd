package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/idnode/idnode/server/config"
)

// TestAloneNeedsSingleNodeOnce: a list of peers that names no other node needs single-node to
// form a cluster, and not afterwards.
func TestAloneNeedsSingleNodeOnce(t *testing.T) {
	t.Parallel()
	c := configs(t, "A")["A"]
	c.SingleNode = false
	for _, peers := range []map[string]string{nil, {"A": c.GRPC}} {
		c.Peer = peers
		if _, err := New(Options{Config: c}); !errors.Is(err, config.ErrAlone) {
			t.Fatalf("a node that begins a cluster alone, with the peers %v: %v", peers, err)
		}
	}
	data := c.DataDir
	c.DataDir = filepath.Join(data, "new")
	if _, err := New(Options{Config: c}); !errors.Is(err, config.ErrAlone) {
		t.Errorf("without a data directory: %v", err)
	}
	if _, err := os.Stat(c.DataDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left a data directory: %v", err)
	}
	c.DataDir = data
	c.SingleNode = true
	n := run(t, c)
	n.ready()
	n.stop()
	c.SingleNode = false
	run(t, c).ready()
}

// TestClusterIDBeginsNothing: a node whose data directory is empty does not start, and makes
// no directory if there was none. A node with data starts, even with a wrong id, as after a
// recovery.
func TestClusterIDBeginsNothing(t *testing.T) {
	t.Parallel()
	c := configs(t, "A")["A"]
	c.SingleNode, c.ClusterID = true, "c3a1c1e7a0e04b63f2b2f6f3b1a0d3c4"
	data := c.DataDir
	c.DataDir = filepath.Join(data, "new")
	if _, err := New(Options{Config: c}); !errors.Is(err, config.ErrNoData) {
		t.Errorf("without a data directory: %v", err)
	}
	if _, err := os.Stat(c.DataDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it left a data directory: %v", err)
	}
	c.DataDir = data
	for range 2 { // The first start leaves a record of the node.
		if _, err := New(Options{Config: c}); !errors.Is(err, config.ErrNoData) {
			t.Fatalf("with an empty one: %v", err)
		}
	}
	c.ClusterID = ""
	n := run(t, c)
	n.ready()
	n.stop()
	c.ClusterID = "c3a1c1e7a0e04b63f2b2f6f3b1a0d3c4"
	run(t, c).ready()
}
