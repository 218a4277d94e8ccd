package fsm

import (
	"errors"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/fsm/table"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/snowflake"
)

type poolItem = compound[*snowflake.Pool, snowflake.Frozen]

// poolStore has the pools of workers. Workers that had a holder count as names of their database.
type poolStore struct {
	compoundStore[*snowflake.Pool, snowflake.Frozen]
	// restoring is the pool whose leases follow in a snapshot.
	restoring *poolItem
}

// leaseBytes is the size that the names in a lease count as.
const leaseBytes = snowflake.MaxHolderBytes + snowflake.MaxPrincipalBytes

func newPoolStore(databases *databaseStore) poolStore {
	return poolStore{compoundStore: newCompoundStore(recordPool, "pool", databases, func(p *snowflake.Pool) (parts, names, bytes int64) {
		known := int64(p.Known())
		return known, known, known * leaseBytes
	})}
}

func (s *poolStore) records(lock sync.Locker) records {
	return recordsOfEach(s.freezeAll(lock), poolRecords)
}

// poolRecords are a pool, then its leases.
func poolRecords(p frozen[snowflake.Frozen]) records {
	return func(yield func(*raftlogv1.SnapshotRecord) bool) {
		m := &raftlogv1.PoolRecord{
			Database: p.db, Name: p.name, Layout: op.PoolLayout(p.is.Layout), Window: p.is.Window, Floor: p.is.Floor, Unknown: p.is.Unknown,
		}
		if !yield(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Pool{Pool: m}}) {
			return
		}
		for l := range p.is.Leases {
			if !yield(&raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_WorkerLease{WorkerLease: op.WorkerLease(l)}}) {
				return
			}
		}
	}
}

// restore restores a pool of a snapshot, still without leases.
func (s *poolStore) restore(m *raftlogv1.PoolRecord) error {
	if err := s.checkRestore(m.GetDatabase(), m.GetName()); err != nil {
		return err
	}
	restored, err := snowflake.Restore(snowflake.Stored{
		Layout: op.LayoutOf(m.GetLayout()), Window: m.GetWindow(), Floor: m.GetFloor(), Unknown: m.GetUnknown(),
	})
	if err != nil {
		return corrupt("pool %q: %v", m.GetName(), err)
	}
	s.restoring = s.add(m.GetDatabase(), m.GetName(), restored)
	return nil
}

// restoreLease restores a lease of the last restored pool.
func (s *poolStore) restoreLease(m *raftlogv1.WorkerLease) error {
	if s.restoring == nil {
		return corrupt("a lease before its pool")
	}
	if err := s.change(s.restoring, func(p *snowflake.Pool) error { return p.Put(op.LeaseOf(m)) }); err != nil {
		return corrupt("pool %q: %v", s.restoring.name, err)
	}
	return nil
}

// NamedPool is a pool of workers in a list.
type NamedPool struct {
	// Name is the folded name.
	Name   string
	Layout snowflake.Layout
	// Window is the longest window.
	Window time.Duration
	// InUse is the number of workers in use, and Ends the end of the first of
	// their windows; zero without any.
	InUse int
	Ends  time.Time
}

// Pools returns a page of the pools at a time, as Identities does.
func (s *State) Pools(db, prefix, after string, limit int, now time.Time) []NamedPool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.contents
	return list(c, c.pools.byName, db, page{prefix, after, limit}, func(e table.Entry[*poolItem]) NamedPool {
		pool := e.Value.is
		p := NamedPool{Name: e.Name, Layout: pool.Layout(), Window: pool.Window()}
		p.InUse, p.Ends = pool.InUse(now)
		return p
	})
}

// ReadPool returns false if there is no such pool. read keeps nothing of it, and is quick: nothing
// is applied until it returns.
func (s *State) ReadPool(db, name string, read func(*snowflake.Pool)) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	i := s.contents.pools.find(s.contents.databases.numberOf([]byte(db)), name)
	if i != nil {
		read(i.is)
	}
	return i != nil
}

// poolDefine begins a pool. If the state does not have all names that were used, there may have been a pool
// of this name, with leases.
//
// Invariant: an operation that forgets the pool's leases does so whatever the layout and window are here:
// leases that are not in the state may have had the same workers and times.
func (c *contents) poolDefine(dst []byte, now moment, o op.Operation, m *raftlogv1.PoolDefine) ([]byte, *refusal) {
	if err := checkText("name", m.GetName(), docid.MaxNameBytes); err != nil {
		return dst, err
	}
	fresh, err := snowflake.NewPool(op.LayoutOf(m.GetLayout()), time.Duration(m.GetWindowNanos()), c.floor.incomplete || m.GetForget())
	if err != nil {
		return dst, refuseWorker(err)
	}
	i := c.pools.find(c.databases.numberOf(o.Database), m.GetName())
	switch {
	case i == nil:
		fresh.Begin(c.floor.windows)
		if err := c.pools.begin(now, o.Database, m, fresh); err != nil {
			return dst, err
		}
		return appendPool(dst, fresh), nil
	case m.GetForget():
		_ = c.pools.change(i, func(p *snowflake.Pool) error { // It never fails.
			p.Forget(fresh.Window())
			return nil
		})
	case !i.is.Same(fresh):
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_POOL_DIFFERS, "layout",
			"pool %.200q has another layout or window", m.GetName())
	}
	return appendPool(dst, i.is), nil
}

// appendPool appends the definition that a pool has.
func appendPool(dst []byte, p *snowflake.Pool) []byte {
	return op.AppendAnswer(dst, &raftlogv1.PoolDefined{Layout: op.PoolLayout(p.Layout()), WindowNanos: int64(p.Window())})
}

// begin stores a new pool. How long its layout lasts does not matter where it may have had leases.
func (s *poolStore) begin(now moment, database []byte, m *raftlogv1.PoolDefine, fresh *snowflake.Pool) *refusal {
	name := m.GetName()
	if err := checkVisible(name); err != nil {
		return err
	}
	if err := fresh.Layout().Check(time.Unix(0, now.unixNano)); err != nil && !m.GetForget() {
		return refuseWorker(err)
	}
	if full := s.databases.roomFor(database, 1, len(name)); full != nil {
		return full
	}
	s.databases.use(database)
	s.add(s.databases.numberOf(database), name, fresh)
	return nil
}

func (s *poolStore) in(database []byte, name string, change func(*snowflake.Pool) error) *refusal {
	i := s.find(s.databases.numberOf(database), name)
	if i == nil {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_POOL_NOT_FOUND, "pool", "there is no pool %.200q", name)
	}
	return refuseWorker(s.change(i, change))
}

// lease changes a pool, and appends the changed lease with the pool's layout to dst.
func (s *poolStore) lease(dst, database []byte, name string, change func(*snowflake.Pool) (snowflake.Lease, error)) ([]byte, *refusal) {
	var changed *raftlogv1.WorkerLease
	refused := s.in(database, name, func(p *snowflake.Pool) error {
		l, err := change(p)
		changed = op.WorkerLease(l)
		changed.Layout = op.PoolLayout(p.Layout())
		return err
	})
	if refused != nil {
		return dst, refused
	}
	return op.AppendAnswer(dst, changed), nil
}

func (c *contents) workerAcquire(dst []byte, now moment, o op.Operation, m *raftlogv1.WorkerAcquire) ([]byte, *refusal) {
	if _, found := docid.FirstInvisible(m.GetHolder()); found || !utf8.ValidString(m.GetHolder()) {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_POOL_INVALID, "holder", "has an invisible character")
	}
	full := c.databases.roomFor(o.Database, 1, leaseBytes)
	r := requestAt(now, m.GetWantNanos(), m.GetHolderUnixNano())
	r.NoneNew, r.Principal = full != nil, keptPrincipal(o.Principal)
	if m.GetOwn() {
		r.Principal = "" // It is for all callers of its node.
	}
	dst, refused := c.pools.lease(dst, o.Database, m.GetPool(), func(p *snowflake.Pool) (snowflake.Lease, error) {
		return p.Acquire(m.GetHolder(), m.GetToken(), r)
	})
	if full != nil && refused != nil && refused.Reason == raftlogv1.RefusalReason_REFUSAL_REASON_POOL_FULL {
		return dst, full
	}
	return dst, refused
}

// requestAt is a request of a holder, at the time of the leader.
func requestAt(now moment, want, holder int64) snowflake.Request {
	return snowflake.Request{Want: time.Duration(want), Holder: time.Unix(0, holder), Leader: time.Unix(0, now.unixNano)}
}

func (c *contents) workerRenew(dst []byte, now moment, o op.Operation, m *raftlogv1.WorkerRenew) ([]byte, *refusal) {
	return c.pools.lease(dst, o.Database, m.GetPool(), func(p *snowflake.Pool) (snowflake.Lease, error) {
		return p.Renew(int(m.GetWorker()), m.GetToken(), requestAt(now, m.GetWantNanos(), m.GetHolderUnixNano()))
	})
}

// workerRelease frees a worker. A repeated release changes nothing.
func (c *contents) workerRelease(dst []byte, _ moment, o op.Operation, m *raftlogv1.WorkerRelease) ([]byte, *refusal) {
	return dst, c.pools.in(o.Database, m.GetPool(), func(p *snowflake.Pool) error {
		return p.Release(int(m.GetWorker()), m.GetToken(), m.GetNext())
	})
}

// workerEvict ends a lease that its holder does not give back. A repeated eviction changes nothing.
func (c *contents) workerEvict(dst []byte, now moment, o op.Operation, m *raftlogv1.WorkerEvict) ([]byte, *refusal) {
	return c.pools.lease(dst, o.Database, m.GetPool(), func(p *snowflake.Pool) (snowflake.Lease, error) {
		return p.Evict(int(m.GetWorker()), m.GetHolder(), time.Unix(0, now.unixNano))
	})
}

// workerRefusals has, for each error of a pool without a field of its own, the reason of the
// refusal, and the invalid field of the request.
var workerRefusals = []struct {
	is     func(error) bool
	reason raftlogv1.RefusalReason
	field  string
}{
	{isError[*snowflake.SkewError], raftlogv1.RefusalReason_REFUSAL_REASON_CLOCK_SKEW, "now"},
	{isError[*snowflake.ShareError], raftlogv1.RefusalReason_REFUSAL_REASON_POOL_FULL, "holder"},
	{isError[*snowflake.FullError], raftlogv1.RefusalReason_REFUSAL_REASON_POOL_FULL, "pool"},
	{isError[*snowflake.PassedError], raftlogv1.RefusalReason_REFUSAL_REASON_LEASE_PASSED, "worker"},
	{isError[*snowflake.HeldError], raftlogv1.RefusalReason_REFUSAL_REASON_LEASE_PASSED, "worker"},
	{isError[snowflake.EndError], raftlogv1.RefusalReason_REFUSAL_REASON_POOL_ENDED, "pool"},
}

func isError[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// refuseWorker translates an error of a pool; nil of nil.
func refuseWorker(err error) *refusal {
	if err == nil {
		return nil
	}
	for _, known := range workerRefusals {
		if known.is(err) {
			return refuse(known.reason, known.field, "%v", err)
		}
	}
	if wrong := (*snowflake.InvalidError)(nil); errors.As(err, &wrong) {
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_POOL_INVALID, wrong.Field, "%s %s", wrong.Field, wrong.Detail)
	}
	return invalid("", "%v", err)
}
