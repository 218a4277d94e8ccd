package node

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/etags"
	"github.com/idnode/idnode/server/grpcapi"
)

// readiness decides whether a node is ready, and why it is not. It is safe for concurrent
// use.
type readiness struct {
	cfg     *config.Config
	cluster *cluster.Node
	state   *fsm.State
	keeper  *etags.Keeper
	audit   *audit.Log
	health  *grpcapi.Health
	// started means that the node has been ready once, stopping that it will not be again.
	started, stopping atomic.Bool
}

const readyPause = 20 * time.Millisecond

func (r *readiness) await(ctx context.Context) error {
	tick := time.NewTicker(readyPause)
	defer tick.Stop()
	for {
		err := r.own()
		if err == nil {
			err = r.cluster.Linearize(ctx)
		}
		if err == nil {
			err = r.guarded()
		}
		if err == nil {
			r.started.Store(true) // Before any caller can see it.
			return nil
		}
		if errors.Is(err, config.ErrUnguarded) {
			return err
		}
		select {
		case <-r.cluster.Done():
			return errors.Join(errors.New("the node has ended"), r.cluster.Err())
		case <-ctx.Done():
			return err
		case <-tick.C:
		}
	}
}

// guarded checks a node that was in a cluster before, once its state is as new as the
// cluster's: only now it is known whether there are roles. Until then dangerous calls are
// refused, and also later if the roles are removed.
func (r *readiness) guarded() error {
	if r.started.Load() {
		return nil
	}
	return r.cfg.CheckGuard(r.state.Roles().Table.Set())
}

// own returns what this node itself still waits for, or nil.
func (r *readiness) own() error {
	if err := r.cluster.ClusterCheck(); err != nil {
		return err
	}
	if _, confirmed := r.cluster.Tag(); !confirmed {
		return errors.New("the node's tag is not confirmed yet")
	}
	if !r.keeper.Ready() {
		return errors.New("the node does not give server-side ids yet")
	}
	return r.cluster.LogServed()
}

func (r *readiness) stop() {
	r.stopping.Store(true)
	r.health.Stop()
}

// reason returns why the node is not ready, or nil. It asks no other node, so it may be
// called often.
func (r *readiness) reason() error {
	switch err := r.cluster.Err(); {
	case errors.Is(err, member.ErrRemoved), r.cluster.Removed():
		return errors.New("removed: this node is no member of the cluster any more, and ends")
	case err != nil:
		return errors.New("failed: the node ends by itself, and its log says why")
	case r.stopping.Load():
		return errors.New("stopping: new calls are refused")
	case !r.started.Load():
		return fmt.Errorf("starting: %w", r.startingFor())
	}
	if !r.cluster.HasQuorum() {
		return fmt.Errorf("no quorum: no majority of the voters has been in reach for %s; server-side ids and GUIDs go on",
			r.cluster.QuorumMissing().Truncate(time.Millisecond))
	}
	if err := r.cluster.LogServed(); err != nil {
		return fmt.Errorf("log not served: %w; server-side ids and GUIDs go on", err)
	}
	return nil
}

func (r *readiness) Ready() bool { return r.reason() == nil }

func (r *readiness) QuorumChanges() <-chan struct{} { return r.cluster.QuorumChanges() }

// slowWarning is the warning of a node whose disk is slow. The node is ready: it reads, and
// another node leads.
const slowWarning = "the disk is slow: a write to the log took longer than a sixth of storage-watchdog, and this node does not get " +
	"leadership for some seconds"

func (r *readiness) warnings() []string {
	warnings := clusterView{r.cluster}.Status().AllWarnings()
	if err := r.audit.Err(); err != nil {
		warnings = append(warnings, fmt.Sprintf("calls that must be recorded are refused with AUDIT_FAILED, until one of them can be: %v", err))
	}
	if r.cluster.StorageSlow() {
		warnings = append(warnings, slowWarning)
	}
	return warnings
}

// startingFor returns what a node that has never been ready waits for.
func (r *readiness) startingFor() error {
	if err := r.cluster.ClusterCheck(); err != nil {
		return err
	}
	if !r.cluster.HasQuorum() {
		return errors.New("no majority of the voters is in reach yet")
	}
	if err := r.own(); err != nil {
		return err
	}
	return errors.New("the state is not known to be as new as the cluster's yet")
}
