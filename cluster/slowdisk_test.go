package cluster_test

import (
	"sync"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
)

// memoryDisk is the storage of one node in memory. Its writes to the log can be made to
// hang, and it says then that they are slow.
type memoryDisk struct {
	*raft.InmemStore
	snapshots raft.SnapshotStore
	record    *member.Record
	slowed    func(bool)

	mu sync.Mutex
	// hang is closed when writes go on; nil if they do not hang.
	hang chan struct{}
}

func newMemoryDisk(t *testing.T) *memoryDisk {
	d := &memoryDisk{InmemStore: raft.NewInmemStore(), snapshots: raft.NewInmemSnapshotStore()}
	t.Cleanup(d.release)
	return d
}

func (d *memoryDisk) LoadRecord() (*member.Record, error) {
	if d.record == nil {
		d.record = &member.Record{ID: member.NewID()}
	}
	return d.record.Clone(), nil
}

func (d *memoryDisk) SaveRecord(record *member.Record) error {
	d.record = record.Clone()
	return nil
}

func (d *memoryDisk) OpenStore(o cluster.StoreOptions) (cluster.Store, error) {
	d.slowed = o.Slowed
	return d, nil
}

func (d *memoryDisk) LoadWitness() ([]byte, error)     { return nil, nil }
func (d *memoryDisk) SaveWitness([]byte) error         { return nil }
func (d *memoryDisk) Snapshots() raft.SnapshotStore    { return d.snapshots }
func (d *memoryDisk) Close() error                     { return nil }
func (d *memoryDisk) StoreLog(log *raft.Log) error     { return d.StoreLogs([]*raft.Log{log}) }
func (d *memoryDisk) StoreLogs(logs []*raft.Log) error { d.wait(); return d.InmemStore.StoreLogs(logs) }

// wait hangs while the disk does.
func (d *memoryDisk) wait() {
	d.mu.Lock()
	hang := d.hang
	d.mu.Unlock()
	if hang == nil {
		return
	}
	d.slowed(true)
	<-hang
	d.slowed(false)
}

func (d *memoryDisk) stall() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hang = make(chan struct{})
}

func (d *memoryDisk) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hang != nil {
		close(d.hang)
		d.hang = nil
	}
}

// startOnMemoryDisks returns a running cluster of three, and the disks by tag.
func startOnMemoryDisks(t *testing.T) (*network, map[string]*memoryDisk) {
	disks := map[string]*memoryDisk{"A": newMemoryDisk(t), "B": newMemoryDisk(t), "C": newMemoryDisk(t)}
	n := newNetwork(t, 3, func(c *cluster.Config) { c.Storage = disks[c.Tag] })
	// Before the nodes, which wait for their writes.
	t.Cleanup(func() {
		for _, d := range disks {
			d.release()
		}
	})
	n.run(n.servers...)
	n.leader()
	return n, disks
}

// knowEachOther waits until all have heard from all others in their pings.
func (n *network) knowEachOther() {
	n.t.Helper()
	eventually(n.t, "answers of all", func() bool {
		for _, s := range n.servers {
			for _, m := range s.node.Status().Members {
				if m.Condition == nil {
					return false
				}
			}
		}
		return true
	})
}

// TestLeadershipLeavesADiskThatHangs: Raft's main goroutine on the leader waits for the
// write, and so could lead on permanently. Callers of that node, too, get their answers
// from the next leader. When the write ends, the node follows.
func TestLeadershipLeavesADiskThatHangs(t *testing.T) {
	n, disks := startOnMemoryDisks(t)
	n.knowEachOther()
	old := n.leader()
	total := old.mustNext("users")
	disks[old.tag].stall()
	for _, s := range n.servers {
		if v := s.mustNext("users"); v != total+1 {
			t.Errorf("%s gave %d after %d", s.tag, v, total)
		}
		total++
		if tag := s.node.Status().LeaderTag; tag == old.tag {
			t.Errorf("%s still takes %s for the leader", s.tag, tag)
		}
	}
	if !old.node.StorageSlow() {
		t.Errorf("the storage of %s is not slow", old.tag)
	}
	disks[old.tag].release()
	eventually(t, old.tag+" to follow", func() bool {
		leader := old.node.Status().LeaderTag
		return leader != "" && leader != old.tag
	})
	eventually(t, "all to hear that the disk is slow", func() bool {
		leader := n.leader()
		for _, m := range leader.node.Status().Members {
			if m.Member.GetTag() == old.tag {
				return m.Condition.GetStorageSlow()
			}
		}
		return false
	})
	if _, err := n.leader().transfer(old.tag); err == nil {
		t.Errorf("leadership was transferred to %s, whose disk is slow", old.tag)
	}
	n.agree()
}
