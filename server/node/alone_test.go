package node

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/idnode/idnode/server/config"
)

// TestAloneNeedsSingleNodeOnce: a list of peers that names no other node needs
// single-node to begin a cluster, and nothing where there is one.
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
