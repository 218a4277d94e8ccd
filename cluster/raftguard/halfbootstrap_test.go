package raftguard

import (
	"testing"

	"github.com/hashicorp/raft"
)

func bootstrapTestStore(t *testing.T, s Store) error {
	t.Helper()
	_, network := raft.NewInmemTransport("a")
	config := raft.DefaultConfig()
	config.LocalID = "a"
	servers := []raft.Server{{ID: "a", Address: "a"}}
	return raft.BootstrapCluster(config, s, s, s.Snapshots(), network, raft.Configuration{Servers: servers})
}

// TestACrashWithinTheBootstrap: a simulated crash between the two writes of the
// library left a founder that took its term for a whole state, and no cluster.
func TestACrashWithinTheBootstrap(t *testing.T) {
	s := openTestStore(t)
	if err := SetStoredTerm(s, 1); err != nil { // what the library writes first
		t.Fatal(err)
	}
	if needed, err := MustBootstrap(s); err != nil || !needed {
		t.Fatalf("got %v, %v", needed, err)
	}
	if err := bootstrapTestStore(t, s); err != nil {
		t.Fatal(err)
	}
	if needed, err := MustBootstrap(s); err != nil || needed {
		t.Errorf("after the bootstrap: %v, %v", needed, err)
	}
}

func TestWhoMustBootstrap(t *testing.T) {
	if needed, err := MustBootstrap(openTestStore(t)); err != nil || !needed {
		t.Errorf("an empty store: %v, %v", needed, err)
	}
	// A later term says that this node took part in elections.
	s := openTestStore(t)
	if err := SetStoredTerm(s, 2); err != nil {
		t.Fatal(err)
	}
	if needed, err := MustBootstrap(s); err != nil || needed {
		t.Errorf("a store with a later term: %v, %v", needed, err)
	}
}
