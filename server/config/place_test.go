package config_test

import "testing"

// TestPeerAndJoin: with both, the first nodes have peers and all others join.
func TestPeerAndJoin(t *testing.T) {
	both := []string{"--data-dir=/data", "--peer=A=a:1,B=b:1", "--join=a:1"}
	first := mustLoad(t, with(both, "--tag=B"), nil)
	if len(first.Peer) != 2 || first.Join != nil {
		t.Errorf("a first node: peers %v, joins %v", first.Peer, first.Join)
	}
	later := mustLoad(t, with(both, "--tag=C"), nil)
	if later.Peer != nil || len(later.Join) != 1 {
		t.Errorf("a later node: peers %v, joins %v", later.Peer, later.Join)
	}
	if _, err := load(t, with(both, "--tag=B", "--watcher"), nil); err == nil {
		t.Error("a first node is a watcher")
	}
}
