package service

import (
	"context"
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/client/snowflake/generator"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/snowflake"
)

// defaultLayout is the ready-made layout of a pool for which none is named.
const defaultLayout = "twitter"

type workers struct {
	*base
	own ownWorkers
}

// DefinePool begins a pool of workers.
func (w *workers) DefinePool(ctx context.Context, req *idnodev1.DefinePoolRequest) (*idnodev1.DefinePoolResponse, error) {
	return admission.Call(ctx, w.Control, "DefinePool", req, w.definePool)
}

func (w *workers) definePool(ctx context.Context, req *idnodev1.DefinePoolRequest) (*idnodev1.DefinePoolResponse, error) {
	pool, err := keyOfPool(req.GetDatabase(), req.GetName(), "name")
	if err != nil {
		return nil, err
	}
	layout, err := layoutOf(req)
	if err != nil {
		return nil, err
	}
	window, err := duration("window", req.GetWindow())
	if err != nil {
		return nil, err
	}
	if req.GetForgetLeases() { // It is a part of a restore, and stops all holders for a while.
		err = w.Authorize(ctx, rights.Cluster, "", "")
	} else {
		err = w.Authorize(ctx, rights.Seed, pool.database, pool.name)
	}
	if err != nil {
		return nil, err
	}
	define := &raftlogv1.PoolDefine{Name: pool.name, Layout: op.PoolLayout(layout), WindowNanos: int64(window), Forget: req.GetForgetLeases()}
	record := audit.Record{Event: audit.EventPoolDefine, Database: pool.database, Name: pool.name, After: layout, Force: req.GetForgetLeases()}
	defined := func(r *raftlogv1.Result) (before, after any) { return nil, op.LayoutOf(r.GetPoolDefined().GetLayout()) }
	result, err := w.proposeAudited(ctx, record, op.Envelope{Database: pool.database}, define, true, defined)
	if err != nil {
		return nil, err
	}
	is := result.GetPoolDefined()
	return &idnodev1.DefinePoolResponse{
		LogIndex: result.GetLogIndex(), Layout: layoutMessage(op.LayoutOf(is.GetLayout())),
		Window: durationpb.New(time.Duration(is.GetWindowNanos())),
	}, nil
}

func layoutOf(req *idnodev1.DefinePoolRequest) (snowflake.Layout, error) {
	l := req.GetLayout()
	name := req.GetLayoutName()
	switch {
	case l != nil && name != "":
		return snowflake.Layout{}, apierror.Invalid(apierror.ReasonInvalidPool, "layout", "a layout and the name of a layout exclude each other")
	case l == nil && name == "":
		return snowflake.Layouts[defaultLayout], nil
	case l == nil:
		known, ok := snowflake.Layouts[name]
		if !ok {
			return snowflake.Layout{}, apierror.Invalid(apierror.ReasonInvalidPool, "layout_name",
				"there is no layout %.80q; the ready-made layouts are twitter, sonyflake-bits, instagram and javascript", name)
		}
		return known, nil
	}
	unit, err := duration("layout.unit", l.GetUnit())
	if err != nil {
		return snowflake.Layout{}, err
	}
	if l.GetEpoch().CheckValid() != nil || unit%time.Millisecond != 0 || l.GetEpoch().AsTime().Nanosecond()%int(time.Millisecond) != 0 {
		return snowflake.Layout{}, apierror.Invalid(apierror.ReasonInvalidPool, "layout", "epoch and unit must be in whole milliseconds")
	}
	return snowflake.Layout{
		Epoch: l.GetEpoch().AsTime().UnixMilli(), Unit: unit.Milliseconds(),
		TimeBits: int(l.GetTimeBits()), WorkerBits: int(l.GetWorkerBits()), SequenceBits: int(l.GetSequenceBits()),
	}, nil
}

func layoutMessage(l snowflake.Layout) *idnodev1.PoolLayout {
	return &idnodev1.PoolLayout{
		Epoch: timestamppb.New(time.UnixMilli(l.Epoch)), Unit: durationpb.New(time.Duration(l.Unit) * time.Millisecond),
		TimeBits: int32(l.TimeBits), WorkerBits: int32(l.WorkerBits), SequenceBits: int32(l.SequenceBits),
	}
}

// poolKey is a pool: database and name are folded.
type poolKey struct{ database, name string }

// keyOfPool checks and folds the name of a pool.
func keyOfPool(database, name, field string) (key poolKey, err error) {
	key.database, key.name, err = keyOf(database, name, field)
	return key, err
}

// duration returns a duration of a request; 0 if it is not set.
func duration(field string, d *durationpb.Duration) (time.Duration, error) {
	if d == nil {
		return 0, nil
	}
	if d.CheckValid() != nil || d.AsDuration() <= 0 {
		return 0, apierror.Invalid(apierror.ReasonInvalidPool, field, "%s is not a time above zero", field)
	}
	return d.AsDuration(), nil
}

// clock returns the holder's clock: that of the request, or this node's if the request has none.
func clock(now *timestamppb.Timestamp) (int64, error) {
	if now == nil {
		return time.Now().UnixNano(), nil
	}
	if now.CheckValid() != nil || !fitsUnixNano(now.AsTime()) {
		return 0, apierror.Invalid(apierror.ReasonInvalidPool, "now", "now is not a valid time")
	}
	return now.AsTime().UnixNano(), nil
}

// AcquireWorker leases a worker of a pool.
func (w *workers) AcquireWorker(ctx context.Context, req *idnodev1.AcquireWorkerRequest) (*idnodev1.AcquireWorkerResponse, error) {
	return admission.Call(ctx, w.Control, "AcquireWorker", req, w.acquireWorker)
}

func (w *workers) acquireWorker(ctx context.Context, req *idnodev1.AcquireWorkerRequest) (*idnodev1.AcquireWorkerResponse, error) {
	pool, err := keyOfPool(req.GetDatabase(), req.GetPool(), "pool")
	if err != nil {
		return nil, err
	}
	acquire := &raftlogv1.WorkerAcquire{Pool: pool.name, Holder: req.GetHolder()}
	if acquire.WantNanos, acquire.HolderUnixNano, err = wanted(req); err != nil {
		return nil, err
	}
	if err := snowflake.CheckHolder(req.GetHolder()); err != nil {
		return nil, apierror.Invalid(apierror.ReasonInvalidPool, "holder", "%v", err)
	}
	what := admission.Target{Database: pool.database, Name: pool.name}
	e, err := w.prepare(ctx, req.GetRequestId(), rights.Ranges, what, 1, func() fingerprint {
		return newFingerprint("AcquireWorker").text(req.GetDatabase()).text(req.GetPool()).text(req.GetHolder()).
			number(acquire.GetWantNanos()).time(req.GetNow())
	})
	if err != nil {
		return nil, err
	}
	e.Principal = w.author(ctx)
	l, index, err := w.lease(ctx, e, acquire)
	if err != nil {
		return nil, err
	}
	return &idnodev1.AcquireWorkerResponse{
		Worker: int32(l.Worker), Token: l.Token, From: l.From, Until: l.Until,
		Layout: layoutMessage(l.Layout), LogIndex: index,
	}, nil
}

// lease leases a worker, and returns the log index of that. Asking again is safe without a request id
// too: a lost window passes.
func (w *workers) lease(ctx context.Context, e op.Envelope, acquire *raftlogv1.WorkerAcquire,
) (lease generator.Lease, index uint64, err error) {
	acquire.Token = reserve.NewToken()
	asked := audit.Leased{Holder: acquire.GetHolder()}
	record := audit.Record{Event: audit.EventWorkerAcquire, Database: e.Database, Name: acquire.GetPool(), After: asked}
	result, err := w.proposeAudited(ctx, record, e, acquire, true, func(result *raftlogv1.Result) (before, after any) {
		return nil, leased(result.GetWorkerLease())
	})
	if err != nil {
		return generator.Lease{}, 0, err
	}
	l := result.GetWorkerLease()
	return generator.Lease{
		Worker: int(l.GetWorker()), Token: tokenText(l.GetToken()), From: l.GetFrom(), Until: l.GetUntil(), Layout: op.LayoutOf(l.GetLayout()),
	}, result.GetLogIndex(), nil
}

func errNoPool() *apierror.Error {
	return &apierror.Error{Code: apierror.CodeNotFound, Reason: apierror.ReasonPoolNotFound, Field: "pool", Message: "there is no such pool"}
}

// leased is a lease as the audit log has it.
func leased(l *raftlogv1.WorkerLease) audit.Leased {
	return audit.Leased{
		Worker: int(l.GetWorker()), Holder: l.GetHolder(), Principal: l.GetPrincipal(),
		Until: time.UnixMilli(op.LayoutOf(l.GetLayout()).UnixMilli(l.GetUntil())).UTC(),
	}
}

type forWindow interface {
	GetWindow() *durationpb.Duration
	GetNow() *timestamppb.Timestamp
}

// wanted returns the length of the window that a request asks for, and the holder's clock.
func wanted(req forWindow) (want, holder int64, err error) {
	window, err := duration("window", req.GetWindow())
	if err != nil {
		return 0, 0, err
	}
	holder, err = clock(req.GetNow())
	return int64(window), holder, err
}

// RenewWorker moves the end of a worker's window.
func (w *workers) RenewWorker(ctx context.Context, req *idnodev1.RenewWorkerRequest) (*idnodev1.RenewWorkerResponse, error) {
	return admission.Call(ctx, w.Control, "RenewWorker", req, w.renewWorker)
}

func (w *workers) renewWorker(ctx context.Context, req *idnodev1.RenewWorkerRequest) (*idnodev1.RenewWorkerResponse, error) {
	pool, token, err := leaseOf(req)
	if err != nil {
		return nil, err
	}
	renew := &raftlogv1.WorkerRenew{Pool: pool.name, Worker: req.GetWorker(), Token: token}
	if renew.WantNanos, renew.HolderUnixNano, err = wanted(req); err != nil {
		return nil, err
	}
	if err := w.Authorize(ctx, rights.Ranges, pool.database, pool.name); err != nil {
		return nil, err
	}
	result, err := w.propose(ctx, op.Envelope{Database: pool.database}, renew, true)
	if err != nil {
		return nil, err
	}
	return &idnodev1.RenewWorkerResponse{Until: result.GetWorkerLease().GetUntil(), LogIndex: result.GetLogIndex()}, nil
}

type ofLease interface {
	GetDatabase() string
	GetPool() string
	GetToken() string
}

func leaseOf(req ofLease) (pool poolKey, token uint64, err error) {
	if pool, err = keyOfPool(req.GetDatabase(), req.GetPool(), "pool"); err != nil {
		return poolKey{}, 0, err
	}
	token, err = parseToken(req.GetToken())
	return pool, token, err
}

// ReleaseWorker frees a worker.
func (w *workers) ReleaseWorker(ctx context.Context, req *idnodev1.ReleaseWorkerRequest) (*idnodev1.ReleaseWorkerResponse, error) {
	return admission.Call(ctx, w.Control, "ReleaseWorker", req, w.releaseWorker)
}

func (w *workers) releaseWorker(ctx context.Context, req *idnodev1.ReleaseWorkerRequest) (*idnodev1.ReleaseWorkerResponse, error) {
	pool, token, err := leaseOf(req)
	if err != nil {
		return nil, err
	}
	if err := w.Authorize(ctx, rights.Ranges, pool.database, pool.name); err != nil {
		return nil, err
	}
	if req.Next == nil {
		return nil, apierror.Invalid(apierror.ReasonInvalidPool, "next", "the first time that no id of the holder has is missing")
	}
	release := &raftlogv1.WorkerRelease{Pool: pool.name, Worker: req.GetWorker(), Token: token, Next: req.GetNext()}
	result, err := w.propose(ctx, op.Envelope{Database: pool.database}, release, true)
	return &idnodev1.ReleaseWorkerResponse{LogIndex: result.GetLogIndex()}, err
}

// EvictWorker ends the lease of a worker whose holder does not give it back.
func (w *workers) EvictWorker(ctx context.Context, req *idnodev1.EvictWorkerRequest) (*idnodev1.EvictWorkerResponse, error) {
	return admission.Call(ctx, w.Control, "EvictWorker", req, w.evictWorker)
}

func (w *workers) evictWorker(ctx context.Context, req *idnodev1.EvictWorkerRequest) (*idnodev1.EvictWorkerResponse, error) {
	pool, err := keyOfPool(req.GetDatabase(), req.GetPool(), "pool")
	if err != nil {
		return nil, err
	}
	if err := w.Authorize(ctx, rights.Delete, pool.database, pool.name); err != nil {
		return nil, err
	}
	if len(req.GetHolder()) > snowflake.MaxHolderBytes {
		return nil, apierror.Invalid(apierror.ReasonInvalidPool, "holder", "%v", snowflake.CheckHolder(req.GetHolder()))
	}
	if req.Worker == nil {
		return nil, apierror.Invalid(apierror.ReasonInvalidPool, "worker", "the worker is missing")
	}
	evict := &raftlogv1.WorkerEvict{Pool: pool.name, Worker: req.GetWorker(), Holder: req.GetHolder()}
	asked := audit.Leased{Worker: int(req.GetWorker()), Holder: req.GetHolder()}
	record := audit.Record{Event: audit.EventWorkerEvict, Database: pool.database, Name: pool.name, Before: asked}
	evicted := func(result *raftlogv1.Result) (before, after any) { return leased(result.GetWorkerLease()), nil }
	result, err := w.proposeAudited(ctx, record, op.Envelope{Database: pool.database}, evict, true, evicted)
	if err != nil {
		return nil, err
	}
	return &idnodev1.EvictWorkerResponse{Until: timestamppb.New(leased(result.GetWorkerLease()).Until), LogIndex: result.GetLogIndex()}, nil
}

// ListPools lists pools in order of their folded names.
func (w *workers) ListPools(ctx context.Context, req *idnodev1.ListPoolsRequest) (*idnodev1.ListPoolsResponse, error) {
	find := func(database, prefix, after string, limit int) []fsm.NamedPool {
		return w.state.Pools(database, prefix, after, limit, time.Now())
	}
	page, err := list(ctx, w.base, "ListPools", listPools, req, find, func(p fsm.NamedPool) (string, *idnodev1.Pool) {
		m := &idnodev1.Pool{
			Name: p.Name, Layout: layoutMessage(p.Layout), Window: durationpb.New(p.Window),
			Workers: int32(p.Layout.Workers()), InUse: int32(p.InUse),
		}
		if !p.Ends.IsZero() {
			m.FirstEnd = timestamppb.New(p.Ends)
		}
		return p.Name, m
	})
	return &idnodev1.ListPoolsResponse{Pools: page.Items, NextPageToken: page.NextPageToken, LogIndex: page.LogIndex}, err
}

// ListWorkers lists the workers of a pool by number.
func (w *workers) ListWorkers(ctx context.Context, req *idnodev1.ListWorkersRequest) (*idnodev1.ListWorkersResponse, error) {
	return admission.Call(ctx, w.Control, "ListWorkers", req, w.listWorkers)
}

func (w *workers) listWorkers(ctx context.Context, req *idnodev1.ListWorkersRequest) (*idnodev1.ListWorkersResponse, error) {
	pool, err := keyOfPool(req.GetDatabase(), req.GetPool(), "pool")
	if err != nil {
		return nil, err
	}
	c, err := cursor{scope: listWorkers, database: pool.database + "\x00" + pool.name}.at(int(req.GetPageSize()), req.GetPageToken())
	if err != nil {
		return nil, err
	}
	from := 0
	if c.after != "" {
		if from, err = strconv.Atoi(c.after); err != nil || from < 0 || from == math.MaxInt {
			return nil, errBadPageToken()
		}
		from++
	}
	index, err := w.settleFor(ctx, req.GetConsistency(), pool.database, pool.name)
	if err != nil {
		return nil, err
	}
	var layout snowflake.Layout
	var found []snowflake.Lease
	if !w.state.ReadPool(pool.database, pool.name, func(p *snowflake.Pool) {
		layout = p.Layout()
		p.Leases(from, func(l snowflake.Lease) bool {
			found = append(found, l)
			return len(found) <= c.size
		})
	}) {
		return nil, errNoPool()
	}
	page := cut(c, found, index, func(l snowflake.Lease) (string, *idnodev1.Worker) {
		at := func(units int64) *timestamppb.Timestamp {
			return timestamppb.New(time.UnixMilli(layout.UnixMilli(units)))
		}
		return strconv.Itoa(l.Worker), &idnodev1.Worker{
			Worker: int32(l.Worker), Holder: l.Holder, Principal: l.Principal, From: at(l.From), Until: at(l.Until), Free: l.Free,
			Evicted: !l.Free && l.Evicted(),
		}
	})
	return &idnodev1.ListWorkersResponse{Workers: page.Items, NextPageToken: page.NextPageToken, LogIndex: page.LogIndex}, nil
}
