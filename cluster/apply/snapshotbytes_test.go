package apply

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// TestNodesTakeSnapshotsInTurn, where all want one at the same entry.
func TestNodesTakeSnapshotsInTurn(t *testing.T) {
	servers := []raft.Server{{ID: "c"}, {ID: "a"}, {ID: "b"}}
	for id, want := range map[raft.ServerID]time.Duration{"a": 0, "b": 10 * time.Second, "c": 20 * time.Second} {
		if got := turn(servers, id, time.Minute); got != want {
			t.Errorf("%s waits for %v, want %v", id, got, want)
		}
	}
	if got := turn(servers, "c", time.Hour); got != 2*maxTurn {
		t.Errorf("c waits for %v", got)
	}
	if got := turn(nil, "a", time.Minute); got != 0 {
		t.Errorf("a node alone waits for %v", got)
	}
}
