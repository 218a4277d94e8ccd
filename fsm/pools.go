package fsm

import (
	"cmp"
	"time"

	"github.com/tidwall/btree"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/snowflake"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/worker"
)

// poolItem is a pool of workers, and where it is.
type poolItem struct {
	db   uint32
	name string
	pool *worker.Pool
	// hash is what of the pool is in the store's sum.
	hash uint64
}

func (i *poolItem) less(j *poolItem) bool {
	return cmp.Or(cmp.Compare(i.db, j.db), cmp.Compare(i.name, j.name)) < 0
}

// poolStore has the pools of workers. Their names, and the workers that had a holder, count as names
// of their database.
//
// Invariant: hash is the sum over the pools. A caller of a pool's method that can change it must
// call changed, even after an error.
type poolStore struct {
	byName    *btree.BTreeG[*poolItem]
	databases *databaseStore
	hash      statehash.Sum
	// restoring is the pool whose leases a snapshot goes on with.
	restoring *poolItem
}

func newPoolStore() poolStore {
	return poolStore{byName: btree.NewBTreeGOptions((*poolItem).less, btree.Options{NoLocks: true})} // State has one.
}

func (s *poolStore) find(db uint32, name string) *poolItem {
	i, _ := s.byName.Get(&poolItem{db: db, name: name})
	return i
}

func (i *poolItem) place() (db uint32, name string) { return i.db, i.name }

func (s *poolStore) ascend(db uint32, name string, yield func(*poolItem) bool) {
	s.byName.Ascend(&poolItem{db: db, name: name}, yield)
}

func (s *poolStore) add(db uint32, name string, is *worker.Pool) *poolItem {
	i := &poolItem{db: db, name: name, pool: is}
	s.byName.Set(i)
	s.databases.count(db, name, 1)
	s.changed(i)
	return i
}

// changed takes what a pool is now into the sum.
func (s *poolStore) changed(i *poolItem) {
	s.hash.Remove(i.hash)
	i.hash = hashPool(i.db, i.name, i.pool.Hash())
	s.hash.Add(i.hash)
}

// forgetAll ends all leases: others may have been given.
func (s *poolStore) forgetAll() {
	s.byName.Scan(func(i *poolItem) bool {
		i.pool.Forget()
		s.changed(i)
		return true
	})
}

type frozenPool struct {
	db   uint32
	name string
	worker.Frozen
}

func (s *poolStore) freeze() []frozenPool {
	all := make([]frozenPool, 0, s.byName.Len())
	s.byName.Scan(func(i *poolItem) bool {
		all = append(all, frozenPool{db: i.db, name: i.name, Frozen: i.pool.Freeze()})
		return true
	})
	return all
}

// write writes a pool, then its leases.
func (p *frozenPool) write(out *snapshotWriter) {
	out.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Pool{Pool: &raftlogv1.PoolRecord{
		Database: p.db, Name: p.name, Layout: op.PoolLayout(p.Layout), Window: p.Window, Floor: p.Floor, Unknown: p.Unknown,
	}}})
	p.Leases(func(l worker.Lease) bool {
		return out.record(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_WorkerLease{WorkerLease: op.WorkerLease(l)}})
	})
}

// restore takes over a pool of a snapshot, still without leases.
func (s *poolStore) restore(m *raftlogv1.PoolRecord) error {
	if err := s.databases.restoreName(m.GetDatabase(), "pool", m.GetName(), docid.MaxNameBytes); err != nil {
		return err
	}
	if s.find(m.GetDatabase(), m.GetName()) != nil {
		return corrupt("pool %q twice", m.GetName())
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
	if err := s.restoring.pool.Put(op.LeaseOf(m)); err != nil {
		return corrupt("pool %q: %v", s.restoring.name, err)
	}
	s.changed(s.restoring)
	s.countLeases(s.restoring.db, 1)
	return nil
}

// countLeases counts workers that have a lease for the first time as names, for the limits.
func (s *poolStore) countLeases(db uint32, fresh int) {
	s.databases.grow(db, int64(fresh), int64(fresh)*worker.MaxHolderBytes)
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
		p := NamedPool{Name: i.name, Layout: i.pool.Layout(), Window: i.pool.Window()}
		p.InUse, p.Ends = i.pool.InUse(now)
		return p
	})
}

// ReadPool returns false if there is no such pool. read keeps nothing of it, and is quick: nothing
// is applied until it returns.
func (s *State) ReadPool(db, name string, read func(*worker.Pool)) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n, ok := s.contents.databases.number(db)
	if !ok {
		return false
	}
	i := s.contents.pools.find(n, name)
	if i == nil {
		return false
	}
	read(i.pool)
	return true
}
