package cluster

import (
	"sync"
	"sync/atomic"

	"github.com/idnode/idnode/cluster/member"
)

// identity is the node's record, in memory and on disk. Readers get a record
// that nobody changes any more.
//
// Invariant: what get returns is on disk.
type identity struct {
	dir     string
	mu      sync.Mutex
	current atomic.Pointer[member.Record]
}

func newIdentity(dir string, record *member.Record) *identity {
	i := &identity{dir: dir}
	i.current.Store(record)
	return i
}

func (i *identity) get() *member.Record { return i.current.Load() }

// update changes the record on disk, then in memory. change gets a copy and
// says whether it changed anything.
func (i *identity) update(change func(*member.Record) bool) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	next := i.current.Load().Clone()
	if !change(next) {
		return nil
	}
	if err := next.Save(i.dir); err != nil {
		return err
	}
	i.current.Store(next)
	return nil
}
