package node

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm"
)

// DataLossError means that the data directory is not as this node wrote it. The node has
// neither voted nor served since it noticed, and must not: it may have forgotten votes or
// acknowledged entries.
type DataLossError struct {
	// Dir is the data directory, Tag the node's tag; empty if unknown.
	Dir, Tag string
	Err      error
}

// Error implements error: the damage, and how to rebuild the node.
func (e *DataLossError) Error() string {
	return fmt.Sprintf("%s: %s; rebuild this node: idnode cluster remove %s at another node, empty %s, "+
		"and start it with --join ADDRESS of a member and without its old tag",
		e.reason(), e.Err, cmp.Or(e.Tag, "TAG"), e.Dir)
}

// reason names the damage: the directory of a node whose state diverged may be as it was
// written.
func (e *DataLossError) reason() string {
	if errors.Is(e.Err, member.ErrDiverged) {
		return "STATE_DIVERGED"
	}
	return "DATA_LOSS"
}

func (e *DataLossError) Unwrap() error { return e.Err }

// damage are the errors, beside those of files, that mean a directory that the node must not
// use.
var damage = []error{
	member.ErrCorrupt, member.ErrMismatch, member.ErrTakenBack, member.ErrSetBack, member.ErrDiverged,
	etag.ErrCorrupt, fsm.ErrCorrupt,
}

// dataLoss returns a DataLossError for an error that means damage, and any other error
// unchanged.
func (n *Node) dataLoss(err error) error {
	isDamage := func(target error) bool { return errors.Is(err, target) }
	_, known := errors.AsType[*DataLossError](err)
	if known || !slices.ContainsFunc(damage, isDamage) && !slices.ContainsFunc(fileDamage, isDamage) {
		return err
	}
	return &DataLossError{Dir: n.cfg.DataDir, Tag: n.lastTag(err), Err: err}
}

// lastTag returns the last known tag of the node, for the operator that rebuilds it. The tag
// it was started with comes first: a record of another node names a sound node, which must
// not be removed.
func (n *Node) lastTag(err error) string {
	if n.cfg.Tag != "" {
		return n.cfg.Tag
	}
	if n.cluster != nil {
		tag, _ := n.cluster.Tag()
		return tag
	}
	if r, loadErr := member.Load(n.cfg.DataDir); loadErr == nil && !errors.Is(err, errForeign) {
		return r.Tag
	}
	return ""
}
