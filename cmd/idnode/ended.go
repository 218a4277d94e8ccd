package main

import (
	"errors"
	"slices"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/node"
)

// refusals are the errors of a node that its cluster does not take, or not any
// more: none goes away by waiting.
var refusals = []error{
	member.ErrRemoved, member.ErrTagTaken, member.ErrNotInCluster, member.ErrOtherCluster, member.ErrJoinDenied, member.ErrTooOld,
	member.ErrOtherVersion, fsm.ErrWrongCluster,
}

// endCode is the exit code of a node that ended by itself. By it service managers start a node
// again, or not, if a person must look at the node.
func endCode(err error) int {
	var damaged *node.DataLossError
	var newer *raftlog.UnknownFormatError
	var refused *op.RefusedError
	isOne := func(target error) bool { return errors.Is(err, target) }
	switch {
	case isOne(config.ErrAlone), isOne(config.ErrUnguarded), isOne(member.ErrOtherNode):
		return exitUsage
	case errors.As(err, &damaged):
		return exitDamaged
	case slices.ContainsFunc(refusals, isOne), isOne(config.ErrNoData), errors.As(err, &newer), errors.As(err, &refused):
		return exitRefused
	default:
		return exitFailed
	}
}
