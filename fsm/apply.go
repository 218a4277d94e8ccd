package fsm

import (
	"bytes"
	"fmt"

	"github.com/idnode/idnode/client/docid"
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
	result, refused := c.tryOperation(dst, now, data)
	if refused != nil {
		return appendRefused(dst, now.index, refused)
	}
	return result
}

// tryOperation runs an operation, unless it is malformed or its caller has no right to it.
func (c *contents) tryOperation(dst []byte, now moment, data []byte) ([]byte, *refusal) {
	o, err := op.Decode(data)
	if err == nil && (!handled(o.Kind) || c.format < formatOf(&o)) {
		err = op.ErrMalformed // Nodes that do not know its format answer the same.
	}
	if err != nil {
		return dst, invalid("", "%v", err)
	}
	if err := c.checkFormed(&o); err != nil {
		return dst, err
	}
	if err := c.roles.check(&o); err != nil {
		return dst, err
	}
	if !o.Keyed {
		return c.run(dst, now, &o)
	}
	return c.runOnce(dst, now, &o)
}

func (c *contents) checkFormed(o *op.Operation) *refusal {
	if c.formed() || o.Kind == op.KindBootstrap {
		return nil
	}
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_FORMED, "", "the cluster is not formed yet")
}

// run runs an operation, appending its result to dst, which is empty and ignored if it is refused.
func (c *contents) run(dst []byte, now moment, o *op.Operation) ([]byte, *refusal) {
	known := &operations[o.Kind]
	if known.inDatabase {
		if err := checkText("database", o.Database, docid.MaxDatabaseBytes); err != nil {
			return dst, err
		}
	}
	return known.run(c, op.AppendLogIndex(dst, now.index), now, *o)
}
