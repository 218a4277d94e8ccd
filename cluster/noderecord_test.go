package cluster

import (
	"testing"

	"github.com/idnode/idnode/cluster/member"
)

// TestANodeIntroducesItselfFromOneRecord: a node that finds its place meanwhile is never
// named by its new tag without its new cluster.
func TestANodeIntroducesItselfFromOneRecord(t *testing.T) {
	before, after := &member.Record{}, &member.Record{ClusterID: []byte("cluster"), Tag: "B"}
	after.Members = append(after.Members, member.NewNodeRecord(after, member.NodeRecordConfig{}).Member())
	after.Members[0].Watcher = true
	n := &Node{record: member.NewNodeRecord(before, member.NodeRecordConfig{Save: func(*member.Record) error { return nil }})}
	become := func(next *member.Record) {
		_ = n.record.Update(func(r *member.Record) bool {
			*r = *next
			return true
		})
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
				become(after)
				become(before)
			}
		}
	}()
	for range 200_000 {
		if self := n.Self(); (len(self.ClusterID) > 0) != (self.Tag == "B") {
			t.Errorf("a node of cluster %q with tag %q", self.ClusterID, self.Tag)
			break
		}
		if m := n.record.Member(); m.GetWatcher() != (m.GetTag() == "B") {
			t.Errorf("a watcher: %v, with tag %q", m.GetWatcher(), m.GetTag())
			break
		}
	}
	close(done)
	<-ended
}
