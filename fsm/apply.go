package fsm

import (
	"bytes"
	"fmt"

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

// applyOperations applies a group's operations and returns their results.
func (c *contents) applyOperations(now moment, operations [][]byte) [][]byte {
	buffer := newResultBuffer(len(operations))
	for i, data := range operations {
		if i%table.Ahead == 0 {
			c.warm(operations[i:min(i+table.Ahead, len(operations))])
		}
		buffer.done(c.applyOperation(buffer.next(), now, data))
	}
	return buffer.results
}

// manyNames is as many as do not fit into the processor's caches.
const manyNames = 1 << 14

// warm prefetches the identities of the next operations.
func (c *contents) warm(operations [][]byte) {
	if c.identities.Len() < manyNames || len(operations) == 1 {
		return
	}
	var keys [table.Ahead]table.Key
	n := 0
	for _, data := range operations {
		if o, err := decodeOperation(data); err == nil && o.kind == opIdentityNext {
			keys[n] = table.Key{Database: c.databaseNumber(&o), Name: nameIn(o.payload)}
			n++
		}
	}
	c.identities.Warm(keys[:n])
}

// applyOperation applies one operation, appending its result to dst, which is
// empty.
func (c *contents) applyOperation(dst []byte, now moment, data []byte) []byte {
	o, err := decodeOperation(data)
	if err == nil && c.format < o.format() {
		err = errOperation // Nodes that do not know its format answer the same.
	}
	if err != nil {
		return appendRefused(dst, now, invalid("", "%v", err))
	}
	if err := c.checkFormed(&o); err != nil {
		return appendRefused(dst, now, err)
	}
	if err := c.roles.check(&o, c.strict()); err != nil {
		return appendRefused(dst, now, err)
	}
	if !o.keyed {
		result, _ := c.run(dst, now, &o)
		return result
	}
	return c.runOnce(dst, now, &o)
}

// checkFormed refuses everything but Bootstrap until the cluster is formed.
func (c *contents) checkFormed(o *operation) *refusal {
	if c.formed() || o.kind == opBootstrap {
		return nil
	}
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_FORMED, "", "the cluster is not formed yet")
}

// run runs an operation, appending its result to dst, which is empty. It reports whether
// the operation was applied; otherwise the result is a refusal.
func (c *contents) run(dst []byte, now moment, o *operation) (result []byte, applied bool) {
	result, refused := c.dispatch(appendLogIndex(dst, now.index), now, o)
	if refused != nil {
		return appendRefused(dst, now, refused), false
	}
	return result, true
}

// appendRefused appends the whole result of an operation that was refused.
func appendRefused(dst []byte, now moment, r *refusal) []byte {
	return appendRefusal(appendLogIndex(dst, now.index), r)
}

// dispatch runs an operation, appending its answer to dst. A handler that refuses has
// changed nothing, and its dst is ignored.
func (c *contents) dispatch(dst []byte, now moment, o *operation) ([]byte, *refusal) {
	switch o.kind {
	case opIdentityNext:
		return c.identityNext(dst, o)
	case opIdentitySeed:
		return c.identitySeed(dst, o)
	case opIdentityDelete:
		return c.identityDelete(dst, o)
	case opHiLoNext:
		return c.hiloNext(dst, now, o)
	case opHiLoReturn:
		return c.hiloReturn(dst, o)
	case opHiLoSet:
		return c.hiloSet(dst, o)
	case opClaim:
		return c.claim(dst, o)
	case opRelease:
		return c.release(dst, o)
	case opSettingSet:
		return c.settingSet(dst, o)
	case opMerge:
		return c.merge(dst, o)
	default:
		return c.dispatchCluster(dst, now, o)
	}
}

// dispatchCluster is dispatch for operations on the cluster itself.
func (c *contents) dispatchCluster(dst []byte, now moment, o *operation) ([]byte, *refusal) {
	switch o.kind {
	case opBootstrap:
		return c.bootstrap(dst, now, o)
	case opMemberJoin:
		return c.memberJoin(dst, now, o)
	case opMemberInvite:
		return c.memberInvite(dst, now, o)
	case opMemberAnnounce:
		return c.memberAnnounce(dst, now, o)
	case opMemberPromote:
		return c.memberPromote(dst, o)
	case opMemberRemove:
		return c.memberRemove(dst, o)
	case opFormatRaise:
		return c.formatRaise(dst, o)
	case opEtagRaise:
		return c.etagRaise(dst, o)
	case opEtagCleanStop:
		return c.etagCleanStop(dst, o)
	case opMergeCluster:
		return c.mergeCluster(dst, o)
	case opRolesSet:
		return c.rolesSet(dst, now, o)
	default:
		return dst, invalid("", "%v", errOperation)
	}
}
