package fsm

import (
	"fmt"
	"strings"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/snowflake"
)

// transcriptLayout is the layout of all pools of transcripts: a unit is a second, so that
// times are read easily.
var transcriptLayout = snowflake.Layout{Epoch: testTime.UnixMilli(), Unit: 1000, TimeBits: 40, WorkerBits: 1, SequenceBits: 8}

// workers understands lines on pools of workers; nil for others. ahead=3s is the holder's clock, and
// next=9 the first second without an id.
func (p *transcript) workers(l line) *raftlogv1.Operation {
	o := &raftlogv1.Operation{Database: "db"}
	clock := p.now.UnixNano() + p.nanos(l, "ahead")
	switch l.verb {
	case "pool":
		layout := transcriptLayout
		layout.SequenceBits += int(l.int("more"))
		o.Op = &raftlogv1.Operation_PoolDefine{PoolDefine: &raftlogv1.PoolDefine{
			Name: l.name(0), Layout: op.PoolLayout(layout), WindowNanos: p.nanos(l, "window"), Forget: l.is("forget"),
		}}
	case "acquire":
		o.Op = &raftlogv1.Operation_WorkerAcquire{WorkerAcquire: &raftlogv1.WorkerAcquire{
			Pool: l.name(0), Holder: l.name(1), Token: uint64(l.int("token")), WantNanos: p.nanos(l, "want"), HolderUnixNano: clock,
			Own: l.is("own"),
		}}
	case "renew":
		o.Op = &raftlogv1.Operation_WorkerRenew{WorkerRenew: &raftlogv1.WorkerRenew{
			Pool: l.name(0), Worker: int32(l.number(1)), Token: uint64(l.int("token")), WantNanos: p.nanos(l, "want"), HolderUnixNano: clock,
		}}
	case "free":
		o.Op = &raftlogv1.Operation_WorkerRelease{WorkerRelease: &raftlogv1.WorkerRelease{
			Pool: l.name(0), Worker: int32(l.number(1)), Token: uint64(l.int("token")), Next: l.int("next"),
		}}
	case "evict":
		o.Op = &raftlogv1.Operation_WorkerEvict{WorkerEvict: &raftlogv1.WorkerEvict{
			Pool: l.name(0), Worker: int32(l.number(1)), Holder: l.text("holder", ""),
		}}
	default:
		return nil
	}
	return o
}

func (p *transcript) showLease(l snowflake.Lease) string {
	s := fmt.Sprintf("%d %s [%d, %d)", l.Worker, l.Holder, l.From, l.Until)
	if l.Free {
		s += " free"
	} else if l.Evicted() {
		s += " evicted"
	}
	return s
}

// readPool shows a pool with its leases.
func (p *transcript) readPool(db, name string) string {
	var all []string
	if !p.state.ReadPool(db, name, func(pool *snowflake.Pool) {
		inUse, _ := pool.InUse(p.now)
		all = append(all, fmt.Sprintf("window %s, %d in use", pool.Window(), inUse))
		pool.Leases(0, func(l snowflake.Lease) bool {
			all = append(all, p.showLease(l))
			return true
		})
	}) {
		return "none"
	}
	return strings.Join(all, "; ")
}
