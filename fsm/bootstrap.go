package fsm

import (
	"bytes"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const clusterIDBytes = 16

// bootstrap forms the cluster. A repetition of the same Bootstrap changes nothing and is no
// error: the node that proposed it may not know the outcome of the first.
func (c *contents) bootstrap(dst []byte, now moment, _ op.Operation, b *raftlogv1.Bootstrap) ([]byte, *refusal) {
	if c.formed() && bytes.Equal(c.clusterID, b.GetClusterId()) {
		return dst, nil
	}
	if c.formed() {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_FORMED, "", "the cluster is formed already")
	}
	if err := checkBootstrap(now, b); err != nil {
		return dst, err
	}
	c.clusterID = bytes.Clone(b.GetClusterId())
	for _, m := range b.GetMembers() {
		first := newMember(m, m.GetTag())
		first.Voter = !m.GetWatcher()
		c.members.put(first)
	}
	return dst, nil
}

func checkBootstrap(now moment, b *raftlogv1.Bootstrap) *refusal {
	if len(b.GetClusterId()) != clusterIDBytes {
		return invalid("cluster_id", "has %d bytes, must have %d", len(b.GetClusterId()), clusterIDBytes)
	}
	if len(now.clusterID) > 0 && !bytes.Equal(now.clusterID, b.GetClusterId()) {
		return invalid("cluster_id", "is not that of the log entry")
	}
	if len(b.GetMembers()) > maxMembers {
		return invalid("members", "are more than %d", maxMembers)
	}
	ids, tags, voters := map[string]bool{}, map[string]bool{}, 0
	for _, m := range b.GetMembers() {
		if err := checkMember(m, firstFormat); err != nil {
			return err
		}
		if err := checkTag(m.GetTag()); err != nil {
			return err
		}
		if ids[string(m.GetId())] || tags[m.GetTag()] {
			return invalid("members", "two have the same id, or the tag %q", m.GetTag())
		}
		ids[string(m.GetId())], tags[m.GetTag()] = true, true
		if !m.GetWatcher() {
			voters++
		}
	}
	if voters == 0 {
		return invalid("members", "none of them votes")
	}
	return nil
}
