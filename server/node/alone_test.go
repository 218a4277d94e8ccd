package node

import (
	"errors"
	"testing"

	"github.com/idnode/idnode/server/config"
)

// TestAloneAfterAnUpgrade: a list of peers that names only the node itself needs
// single-node to begin a cluster, and nothing where there is one: it began before the
// setting existed.
func TestAloneAfterAnUpgrade(t *testing.T) {
	t.Parallel()
	c := configs(t, "A")["A"]
	c.Peer = map[string]string{"A": c.GRPC}
	if _, err := New(Options{Config: c}); !errors.Is(err, config.ErrAlone) {
		t.Fatalf("a node that begins a cluster alone: %v", err)
	}
	c.SingleNode = true
	n := run(t, c)
	n.ready()
	n.stop()
	c.SingleNode = false
	run(t, c).ready()
}
