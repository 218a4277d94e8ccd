package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/raftlog"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/node"
	"github.com/idnode/idnode/server/tracing"
)

// newNode assembles a real node.
func newNode(cfg *config.Config, log *slog.Logger) (server, error) {
	traces, err := tracing.Start(context.Background(), tracing.Config{
		Version: versionText(), Instance: cmp.Or(cfg.Tag, cfg.AdvertiseGRPC), Getenv: os.Getenv, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	n, err := node.New(node.Options{Config: cfg, Logger: log, Version: versionText(), Tracing: traces, Now: failpoint.Now})
	if err != nil {
		// A nil *Node in the interface would not be nil.
		return nil, err
	}
	return n, nil
}

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
