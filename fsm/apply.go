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
		if op, err := decodeOperation(data); err == nil && op.kind == opIdentityNext {
			keys[n] = table.Key{Database: c.databaseNumber(&op), Name: nameIn(op.payload)}
			n++
		}
	}
	c.identities.Warm(keys[:n])
}

// applyOperation applies one operation, appending its result to dst, which is
// empty.
func (c *contents) applyOperation(dst []byte, now moment, data []byte) []byte {
	op, err := decodeOperation(data)
	if err == nil && c.format < op.format() {
		err = errOperation // Nodes that do not know its format answer the same.
	}
	if err != nil {
		return appendRefused(dst, now, invalid("", "%v", err))
	}
	if err := c.checkFormed(&op); err != nil {
		return appendRefused(dst, now, err)
	}
	if err := c.checkRights(&op); err != nil {
		return appendRefused(dst, now, err)
	}
	if !op.keyed {
		result, _ := c.run(dst, now, &op)
		return result
	}
	return c.runOnce(dst, now, &op)
}

// checkFormed refuses everything but Bootstrap until the cluster is formed.
func (c *contents) checkFormed(op *operation) *refusal {
	if c.formed() || op.kind == opBootstrap {
		return nil
	}
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_FORMED, "", "the cluster is not formed yet")
}

// run runs an operation, appending its result to dst, which is empty. It reports whether
// the operation was applied; otherwise the result is a refusal.
func (c *contents) run(dst []byte, now moment, op *operation) (result []byte, applied bool) {
	result, refused := c.dispatch(appendLogIndex(dst, now.index), now, op)
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
func (c *contents) dispatch(dst []byte, now moment, op *operation) ([]byte, *refusal) {
	switch op.kind {
	case opIdentityNext:
		return c.identityNext(dst, op)
	case opIdentitySeed:
		return c.identitySeed(dst, op)
	case opIdentityDelete:
		return c.identityDelete(dst, op)
	case opHiLoNext:
		return c.hiloNext(dst, now, op)
	case opHiLoReturn:
		return c.hiloReturn(dst, op)
	case opHiLoSet:
		return c.hiloSet(dst, op)
	case opClaim:
		return c.claim(dst, op)
	case opRelease:
		return c.release(dst, op)
	case opSettingSet:
		return c.settingSet(dst, op)
	case opMerge:
		return c.merge(dst, op)
	default:
		return c.dispatchCluster(dst, now, op)
	}
}

// dispatchCluster is dispatch for operations on the cluster itself.
func (c *contents) dispatchCluster(dst []byte, now moment, op *operation) ([]byte, *refusal) {
	switch op.kind {
	case opBootstrap:
		return c.bootstrap(dst, now, op)
	case opMemberJoin:
		return c.memberJoin(dst, now, op)
	case opMemberInvite:
		return c.memberInvite(dst, now, op)
	case opMemberAnnounce:
		return c.memberAnnounce(dst, now, op)
	case opMemberPromote:
		return c.memberPromote(dst, op)
	case opMemberRemove:
		return c.memberRemove(dst, op)
	case opFormatRaise:
		return c.formatRaise(dst, op)
	case opEtagRaise:
		return c.etagRaise(dst, op)
	case opEtagCleanStop:
		return c.etagCleanStop(dst, op)
	case opMergeCluster:
		return c.mergeCluster(dst, op)
	case opRolesSet:
		return c.rolesSet(dst, now, op)
	default:
		return dst, invalid("", "%v", errOperation)
	}
}
