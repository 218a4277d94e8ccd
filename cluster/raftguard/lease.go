package raftguard

import (
	"reflect"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// setLease sets the time without contact with a quorum after which a leader steps down. The
// library (v1.7.3) reads it from its configuration at each check, but ReloadConfig does not change
// it, and refuses one that is longer than the heartbeat timeout. No call of ReloadConfig may be in
// progress.
func setLease(r *raft.Raft, lease time.Duration) {
	conf := configuration(r)
	config := conf.Load().(raft.Config)
	config.LeaderLeaseTimeout = lease
	conf.Store(config)
}

// configuration is where the library has its configuration, a raft.Config.
func configuration(r *raft.Raft) *atomic.Value {
	field := reflect.ValueOf(r).Elem().FieldByName("conf")
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Interface().(*atomic.Value)
}
