package etags

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// raiseBatch is the number of databases raised by one operation: with the longest names
	// an operation then has some 36 KiB, no more than a group of calls.
	raiseBatch = 256
	// stopBytes bounds one part of a clean stop, below the size of a group of calls;
	// lastBytes is a database's size in it beside its name.
	stopBytes, lastBytes = 48 << 10, 16
)

// MessageCeiling is logged when the cluster keeps a ceiling for a database. From then on a
// data directory that is set back is detected. Tests look for it.
const MessageCeiling = "the cluster keeps a ceiling of server-side etags"

// raiseCeilings asks the cluster for ceilings ahead of the reserved blocks, for all databases
// that need it, in batches. It returns at the first failure. New databases are last: the
// cluster may have no room for them.
func (k *Keeper) raiseCeilings(ctx context.Context) error {
	var known, fresh []*raftlogv1.EtagCeiling
	for database, reserved := range k.cfg.Counters.Reserved() {
		ceiling, isKnown := k.ceilings[database]
		next, ask := etag.NextCeiling(reserved, ceiling)
		to := &raftlogv1.EtagCeiling{Database: database, Ceiling: next}
		switch {
		case !ask:
		case isKnown:
			known = append(known, to)
		default:
			fresh = append(fresh, to)
		}
	}
	for _, list := range [...][]*raftlogv1.EtagCeiling{known, fresh} {
		slices.SortFunc(list, func(a, b *raftlogv1.EtagCeiling) int { return cmp.Compare(a.GetDatabase(), b.GetDatabase()) })
	}
	for batch := range slices.Chunk(known, raiseBatch) {
		if _, err := k.raise(ctx, batch); err != nil {
			return err
		}
	}
	return k.raiseNew(ctx, fresh)
}

// raiseNew asks for the first ceilings of databases. Once the cluster has no room for a
// database it has none for the following databases: they are beyond its limit, and get no
// etags until it has room for them.
func (k *Keeper) raiseNew(ctx context.Context, fresh []*raftlogv1.EtagCeiling) error {
	size := raiseBatch
	if k.beyond.Load() != nil {
		size = 1 // Most likely there is no room yet.
	}
	for len(fresh) > 0 {
		batch := fresh[:min(size, len(fresh))]
		beyond, err := k.raise(ctx, batch)
		if err != nil {
			return err
		}
		fresh, size = fresh[len(batch):], min(2*size, raiseBatch)
		if len(beyond) > 0 {
			k.setBeyond(beyond, fresh)
			return nil
		}
	}
	k.setBeyond(nil, nil)
	return nil
}

func (k *Keeper) setBeyond(refused []string, notAsked []*raftlogv1.EtagCeiling) {
	before := k.beyond.Load()
	if len(refused)+len(notAsked) == 0 {
		k.beyond.Store(nil)
		return
	}
	beyond := make(map[string]bool, len(refused)+len(notAsked))
	for _, database := range refused {
		beyond[database] = true
	}
	for _, to := range notAsked {
		beyond[to.GetDatabase()] = true
	}
	k.beyond.Store(&beyond)
	if before == nil {
		k.cfg.Logger.Warn("databases are beyond the limit max-databases: they get no server-side ids until it is raised",
			"databases", len(beyond), "first", slices.Min(slices.Collect(maps.Keys(beyond))))
	}
}

func (k *Keeper) isBeyond(database string) bool {
	beyond := k.beyond.Load()
	return beyond != nil && (*beyond)[database]
}

// raise asks for the ceilings of a batch, and returns the databases for which there is no
// room.
func (k *Keeper) raise(ctx context.Context, batch []*raftlogv1.EtagCeiling) (beyond []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, raiseTimeout)
	defer cancel()
	result, err := k.propose(ctx, &raftlogv1.EtagRaise{Node: k.cfg.NodeID, Raise: batch})
	if err != nil {
		return nil, err
	}
	beyond = result.GetEtag().GetRefused()
	for _, r := range batch {
		if slices.Contains(beyond, r.GetDatabase()) {
			continue
		}
		k.ceilings[r.GetDatabase()] = r.GetCeiling()
		k.cfg.Logger.Debug(MessageCeiling, "database", r.GetDatabase(), "ceiling", r.GetCeiling())
	}
	return beyond, nil
}

// tellCleanStop records the last etags in the cluster, in parts of at most stopBytes.
func (k *Keeper) tellCleanStop(ctx context.Context, last map[string]uint64) error {
	start := k.startNumber()
	if start == 0 {
		return errors.New("the cluster never answered an announcement")
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for databases := slices.Sorted(maps.Keys(last)); ; {
		stop := &raftlogv1.EtagCleanStop{Node: k.cfg.NodeID, Start: start}
		for size := 0; len(databases) > 0 && size < stopBytes; databases = databases[1:] {
			stop.Last = append(stop.Last, &raftlogv1.EtagCeiling{Database: databases[0], Last: last[databases[0]]})
			size += len(databases[0]) + lastBytes
		}
		stop.Partial = len(databases) > 0
		_, err := k.propose(ctx, stop)
		if err != nil || !stop.Partial {
			return err
		}
	}
}

func (k *Keeper) propose(ctx context.Context, payload proto.Message) (*raftlogv1.Result, error) {
	return op.Envelope{}.Propose(ctx, k.cfg.Proposer, payload)
}
