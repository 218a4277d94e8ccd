package leader

import (
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestVotersWithout: those count that vote and stay. Where the member does not vote,
// or is out already, its removal changes nothing for the quorum.
func TestVotersWithout(t *testing.T) {
	members := []*raftlogv1.Member{
		{Tag: "A", Voter: true},
		{Tag: "B", Voter: true},
		{Tag: "C", Voter: true},
		{Tag: "D"},
		{Tag: "E", Watcher: true},
		{Tag: "F", Removed: true},
	}
	for tag, want := range map[string]string{"A": "B, C", "C": "A, B", "D": "", "E": "", "F": "", "Z": ""} {
		if got := tagsOf(votersWithout(members, tag)); got != want {
			t.Errorf("without %s, the voters %q must answer, want %q", tag, got, want)
		}
	}
}
