package fsm

import (
	"time"

	"github.com/idnode/idnode/client/snowflake"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/worker"
)

type poolItem = named[*worker.Pool]

// poolStore has the pools of workers. Workers that had a holder count as names of their database.
type poolStore struct {
	namedStore[*worker.Pool]
	// restoring is the pool whose leases a snapshot goes on with.
	restoring *poolItem
}

func newPoolStore(databases *databaseStore) poolStore {
	return poolStore{namedStore: newNamedStore(recordPool, "pool", databases, func(p *worker.Pool) (parts, names, bytes int64) {
		known := int64(p.Known())
		return known, known, known * worker.MaxHolderBytes
	})}
}

// pool writes a pool, then its leases.
func (w *snapshotWriter) pool(p *frozen[worker.Frozen]) {
	w.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Pool{Pool: &raftlogv1.PoolRecord{
		Database: p.db, Name: p.name, Layout: op.PoolLayout(p.is.Layout), Window: p.is.Window, Floor: p.is.Floor, Unknown: p.is.Unknown,
	}}})
	p.is.Leases(func(l worker.Lease) bool {
		return w.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_WorkerLease{WorkerLease: op.WorkerLease(l)}})
	})
}

// restore takes over a pool of a snapshot, still without leases.
func (s *poolStore) restore(m *raftlogv1.PoolRecord) error {
	if err := s.checkRestore(m.GetDatabase(), m.GetName()); err != nil {
		return err
	}
	restored, err := worker.Restore(worker.Stored{
		Layout: op.LayoutOf(m.GetLayout()), Window: m.GetWindow(), Floor: m.GetFloor(), Unknown: m.GetUnknown(),
	})
	if err != nil {
		return corrupt("pool %q: %v", m.GetName(), err)
	}
	s.restoring = s.add(m.GetDatabase(), m.GetName(), restored)
	return nil
}

// restoreLease takes over a lease of the pool that came last.
func (s *poolStore) restoreLease(m *raftlogv1.WorkerLease) error {
	if s.restoring == nil {
		return corrupt("a lease before its pool")
	}
	if err := s.restoring.is.Put(op.LeaseOf(m)); err != nil {
		return corrupt("pool %q: %v", s.restoring.name, err)
	}
	s.changed(s.restoring)
	return nil
}

// NamedPool is a pool of workers in a list.
type NamedPool struct {
	// Name is the folded name.
	Name   string
	Layout snowflake.Layout
	// Window is the longest window.
	Window time.Duration
	// InUse is how many workers are in use, and Ends when the first of their
	// windows ends; zero if none is.
	InUse int
	Ends  time.Time
}

// Pools returns a page of the pools at a time, as Identities does.
func (s *State) Pools(db, prefix, after string, limit int, now time.Time) []NamedPool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.contents
	return pageOf(c, db, page{prefix, after, limit}, c.pools.ascend, (*poolItem).place, func(i *poolItem) NamedPool {
		p := NamedPool{Name: i.name, Layout: i.is.Layout(), Window: i.is.Window()}
		p.InUse, p.Ends = i.is.InUse(now)
		return p
	})
}

// ReadPool returns false if there is no such pool. read keeps nothing of it, and is quick: nothing
// is applied until it returns.
func (s *State) ReadPool(db, name string, read func(*worker.Pool)) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := s.contents.pools.find(s.contents.databases.numberOf([]byte(db)), name)
	if i != nil {
		read(i.is)
	}
	return i != nil
}
