package cluster_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/idnode/idnode/cluster/witness"
)

// TestAStoppedNodeKnowsWhatIsCommitted: also what was committed since the last of the periodic
// writes. Otherwise a majority that was set back while it was away could take entries back unnoticed.
func TestAStoppedNodeKnowsWhatIsCommitted(t *testing.T) {
	n := startNetwork(t, 1)
	s := n.leader()
	for range 3 {
		s.mustNext("users")
	}
	applied := s.state.AppliedIndex()
	s.stop(true)
	data, err := os.ReadFile(filepath.Join(s.dir, "witness.json"))
	if err != nil {
		t.Fatal(err)
	}
	record, err := witness.Decode(data, s.state.ClusterID())
	if err != nil || record.Committed < applied {
		t.Errorf("the record says that %d is committed, and %d was applied; %v", record.Committed, applied, err)
	}
}
