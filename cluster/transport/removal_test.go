package transport

import (
	"testing"

	"github.com/hashicorp/raft"
)

// TestAMemberIsNotSentTheConfigurationByWhichItLeaves, nor later entries. Older configurations
// without the member, from before it joined, are sent.
func TestAMemberIsNotSentTheConfigurationByWhichItLeaves(t *testing.T) {
	configuration := func(index uint64, members ...string) *raft.Log {
		var c raft.Configuration
		for _, tag := range members {
			c.Servers = append(c.Servers, raft.Server{ID: raft.ServerID(idOf(tag)), Address: Address(raft.ServerID(idOf(tag)))})
		}
		return &raft.Log{Index: index, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(c)}
	}
	for name, tt := range map[string]struct {
		newest *raft.Log
		want   int
	}{
		"it stays":  {configuration(6, "A", "B"), 4},
		"it leaves": {configuration(6, "A"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			from := start(t, b, "A", func(c *Config) { c.Configured = func() uint64 { return 6 } })
			to, id := startBare(t, b, "B"), raft.ServerID(idOf("B"))
			entries := []*raft.Log{configuration(4, "A"), {Index: 5}, tt.newest, {Index: 7}}
			failed := make(chan error, 1)
			go func() {
				failed <- from.AppendEntries(id, Address(id),
					&raft.AppendEntriesRequest{RPCHeader: header("A"), Term: 3, PrevLogEntry: 3, Entries: entries}, &raft.AppendEntriesResponse{})
			}()
			got := take(t, to.Consumer()).(*raft.AppendEntriesRequest)
			must(t, <-failed)
			if len(got.Entries) != tt.want {
				t.Errorf("%d entries arrive, want %d", len(got.Entries), tt.want)
			}
		})
	}
}
