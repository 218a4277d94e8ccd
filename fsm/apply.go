package fsm

import (
	"bytes"
	"fmt"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/fsm/table"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// moment is the entry's index and time for an operation.
type moment struct {
	// index is the entry's log index.
	index uint64
	// unixNano is the leader's clock.
	unixNano int64
	// clusterID is the entry's.
	clusterID []byte
}

// checkEntry refuses an entry as a whole: the node must stop.
func (c *contents) checkEntry(index uint64, e *raftlog.Entry) error {
	if index <= c.applied {
		return fmt.Errorf("%w: %d is applied already", ErrOrder, c.applied)
	}
	if c.formed() && !bytes.Equal(e.ClusterID, c.clusterID) {
		return fmt.Errorf("%w: it is of %x, this is %x", ErrWrongCluster, e.ClusterID, c.clusterID)
	}
	return nil
}

func (c *contents) applyOperations(now moment, operations [][]byte) [][]byte {
	buffer := newResultBuffer(len(operations))
	for i, data := range operations {
		if i%table.Ahead == 0 {
			c.identities.warm(operations[i:min(i+table.Ahead, len(operations))])
		}
		buffer.done(c.applyOperation(buffer.next(), now, data))
	}
	return buffer.results
}

// applyOperation applies one operation, appending its result to dst, which is
// empty.
func (c *contents) applyOperation(dst []byte, now moment, data []byte) []byte {
	o, err := op.Decode(data)
	if err == nil && c.format < formatOf(&o) {
		err = op.ErrMalformed // Nodes that do not know its format answer the same.
	}
	if err != nil {
		return appendRefused(dst, now.index, invalid("", "%v", err))
	}
	if err := c.checkFormed(&o); err != nil {
		return appendRefused(dst, now.index, err)
	}
	if err := c.roles.check(&o); err != nil {
		return appendRefused(dst, now.index, err)
	}
	if !o.Keyed {
		result, _ := c.run(dst, now, &o)
		return result
	}
	return c.runOnce(dst, now, &o)
}

// checkFormed refuses everything but Bootstrap until the cluster is formed.
func (c *contents) checkFormed(o *op.Operation) *refusal {
	if c.formed() || o.Kind == op.KindBootstrap {
		return nil
	}
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_FORMED, "", "the cluster is not formed yet")
}

// run runs an operation, appending its result to dst, which is empty. It reports whether
// the operation was applied; otherwise the result is a refusal.
func (c *contents) run(dst []byte, now moment, o *op.Operation) (result []byte, applied bool) {
	result, refused := c.dispatch(op.AppendLogIndex(dst, now.index), now, o)
	if refused != nil {
		return appendRefused(dst, now.index, refused), false
	}
	return result, true
}

// dispatch runs an operation, appending its answer to dst. A handler that refuses has
// changed nothing but the time of a series, and its dst is ignored.
func (c *contents) dispatch(dst []byte, now moment, o *op.Operation) ([]byte, *refusal) {
	switch o.Kind {
	case op.KindIdentityNext:
		return c.identityNext(dst, o)
	case op.KindIdentitySeed:
		return c.identitySeed(dst, o)
	case op.KindIdentityDelete:
		return c.identityDelete(dst, o)
	case op.KindHiLoNext:
		return c.hiloNext(dst, now, o)
	case op.KindHiLoReturn:
		return c.hiloReturn(dst, o)
	case op.KindHiLoSet:
		return c.hiloSet(dst, o)
	case op.KindClaim:
		return c.claim(dst, o)
	case op.KindRelease:
		return c.release(dst, o)
	case op.KindSettingSet:
		return c.settingSet(dst, now, o)
	case op.KindMerge:
		return c.merge(dst, o)
	default:
		return c.dispatchCluster(dst, now, o)
	}
}

// dispatchCluster is dispatch for operations on series, on workers, and on the cluster itself.
func (c *contents) dispatchCluster(dst []byte, now moment, o *op.Operation) ([]byte, *refusal) {
	if o.Kind.OfSeries() {
		return c.series.apply(dst, now, o, c.floor)
	}
	if o.Kind.OfWorkers() {
		return c.pools.apply(dst, now, o, c.floor)
	}
	switch o.Kind {
	case op.KindBootstrap:
		return c.bootstrap(dst, now, o)
	case op.KindMemberAdd:
		return c.memberAdd(dst, now, o)
	case op.KindJoinTokenCreate:
		return c.joinTokenCreate(dst, now, o)
	case op.KindMemberAnnounce:
		return c.memberAnnounce(dst, now, o)
	case op.KindMemberPromote:
		return c.memberPromote(dst, o)
	case op.KindMemberRemove:
		return c.memberRemove(dst, o)
	case op.KindFormatRaise:
		return c.formatRaise(dst, o)
	case op.KindEtagRaise:
		return c.etagRaise(dst, o)
	case op.KindEtagCleanStop:
		return c.etagCleanStop(dst, o)
	case op.KindMergeCluster:
		return c.mergeCluster(dst, o)
	case op.KindRolesSet:
		return c.rolesSet(dst, now, o)
	default:
		return dst, invalid("", "%v", op.ErrMalformed)
	}
}
