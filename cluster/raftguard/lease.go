package raftguard

import (
	"reflect"
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// setTimeouts has the library use timeouts, all in one step. The library (v1.7.3) reads them from its
// configuration each time, but its ReloadConfig does not change the commit timeout and the lease, the
// time without contact with a quorum after which a leader steps down, and refuses a lease that is longer
// than the heartbeat timeout. No call of ReloadConfig may be in progress.
func setTimeouts(r *raft.Raft, t timeouts) {
	conf := configuration(r)
	config := conf.Load().(raft.Config)
	config.HeartbeatTimeout, config.ElectionTimeout = t.heartbeat, t.election
	config.LeaderLeaseTimeout, config.CommitTimeout = t.lease, t.commit
	conf.Store(config)
}

// configuration is where the library has its configuration, a raft.Config.
func configuration(r *raft.Raft) *atomic.Value {
	field := reflect.ValueOf(r).Elem().FieldByName("conf")
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Interface().(*atomic.Value)
}
