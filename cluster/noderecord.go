package cluster

import (
	"sync/atomic"

	"github.com/idnode/idnode/cluster/member"
)

// nodeRecord is the node's record, in memory and in the storage. Readers get a record
// that is never changed.
//
// Invariant: what get returns is durable.
type nodeRecord struct {
	storage Storage
	// changing is full while a change is in progress. It is not a mutex because a change
	// waits for the disk, and virtual time does not advance while a goroutine waits for a
	// mutex.
	changing chan struct{}
	current  atomic.Pointer[member.Record]
}

func newNodeRecord(storage Storage, record *member.Record) *nodeRecord {
	r := &nodeRecord{storage: storage, changing: make(chan struct{}, 1)}
	r.current.Store(record)
	return r
}

func (r *nodeRecord) get() *member.Record { return r.current.Load() }

// update changes the record in the storage, then in memory. change gets a copy and
// reports whether it changed anything.
func (r *nodeRecord) update(change func(*member.Record) bool) error {
	r.changing <- struct{}{}
	defer func() { <-r.changing }()
	next := r.current.Load().Clone()
	if !change(next) {
		return nil
	}
	if err := r.storage.SaveRecord(next); err != nil {
		return err
	}
	r.current.Store(next)
	return nil
}
