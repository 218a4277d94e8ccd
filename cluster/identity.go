package cluster

import (
	"sync/atomic"

	"github.com/idnode/idnode/cluster/member"
)

// identity is the node's record, in memory and in the storage. Readers get a record
// that nobody changes any more.
//
// Invariant: what get returns is durable.
type identity struct {
	storage Storage
	// changing is full while a change is under way. It is no mutex because a change
	// waits for the disk, which virtual time cannot see behind a mutex.
	changing chan struct{}
	current  atomic.Pointer[member.Record]
}

func newIdentity(storage Storage, record *member.Record) *identity {
	i := &identity{storage: storage, changing: make(chan struct{}, 1)}
	i.current.Store(record)
	return i
}

func (i *identity) get() *member.Record { return i.current.Load() }

// update changes the record in the storage, then in memory. change gets a copy and
// says whether it changed anything.
func (i *identity) update(change func(*member.Record) bool) error {
	i.changing <- struct{}{}
	defer func() { <-i.changing }()
	next := i.current.Load().Clone()
	if !change(next) {
		return nil
	}
	if err := i.storage.SaveRecord(next); err != nil {
		return err
	}
	i.current.Store(next)
	return nil
}
