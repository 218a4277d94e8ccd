// Package etags keeps this node's etag counters in step with the cluster: it raises the
// cluster's ceilings ahead of the counters, and decides where counters continue after a start.
package etags

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/idnode/idnode/etag"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// defaultStartWait is longer than an election under load, so that a node that starts
	// beside a healthy cluster gets its answer.
	defaultStartWait = 5 * time.Second
	// stopTimeout bounds the report of a clean stop to the cluster. If it fails, the next start
	// leaves a gap.
	stopTimeout = 2 * time.Second
	// raiseTimeout bounds one raise of ceilings. It is longer than the cluster's wait for a leader
	// (2 s).
	raiseTimeout = 5 * time.Second
	// raiseMinBackoff and raiseMaxBackoff bound the pause after a failure.
	raiseMinBackoff, raiseMaxBackoff = 100 * time.Millisecond, 5 * time.Second
)

// Config is the configuration and dependencies of a Keeper.
type Config struct {
	// Counters are closed by the keeper's Stop.
	Counters *etag.Counters
	Proposer op.Proposer
	// NodeID is this node's Raft id, 16 bytes.
	NodeID []byte
	// StartWait is how long a start waits for the cluster before the counters continue from
	// the disk alone. 0 means 5 s, less than 0 no wait.
	StartWait time.Duration
	// ClusterCheck returns why the node serves no callers yet, or nil: it may be in the
	// place of another cluster's node.
	ClusterCheck func() error
	// Logger logs a disk that was set back, and failures.
	Logger *slog.Logger
}

// phase is a keeper's phase. It only rises.
type phase = int32

const (
	waiting phase = iota // for the first announcement
	serving
	stopped
)

// Keeper connects this node's counters with the cluster, which keeps a ceiling for each of
// them, so that a data directory which was set back to an older copy is detected, and no etag
// is handed out twice.
//
// It hands out etags only once it is known where they continue: where the disk and the
// cluster agree, or, after StartWait without a cluster, from the disk alone. From then on it
// never waits for the cluster: ceilings rise in the background. It is safe for concurrent
// use.
type Keeper struct {
	cfg   Config
	phase atomic.Int32

	// announced holds a value if there is a new announcement for the loop.
	announced chan struct{}
	// beyond are the databases for which the cluster keeps no ceiling, because they are
	// beyond its limit; nil if there are none. The loop replaces the map.
	beyond atomic.Pointer[map[string]bool]

	// cancel ends the loop; done is closed when it has ended.
	cancel context.CancelFunc
	done   chan struct{}

	mu sync.Mutex
	// view is the cluster's view in the first announcement; nil before it.
	view *etag.ClusterView
	// start is the newest announced start number.
	start uint64

	// stopOnce makes Stop repeatable; stopErr is its result.
	stopOnce sync.Once
	stopErr  error

	// The fields below belong to the loop; after done is closed, to every reader.

	// reconciled means that view has been applied.
	reconciled bool
	// recorded is the start number on disk.
	recorded uint64
	// ceilings are the cluster's ceilings, by database, as far as this node knows.
	ceilings map[string]uint64
}

// NewKeeper returns a keeper whose loop is running. The owner must call Stop, which also
// closes the counters.
func NewKeeper(cfg Config) *Keeper {
	cfg.StartWait = cmp.Or(cfg.StartWait, defaultStartWait)
	ctx, cancel := context.WithCancel(context.Background())
	k := &Keeper{
		cfg:       cfg,
		announced: make(chan struct{}, 1),
		cancel:    cancel,
		done:      make(chan struct{}),
		ceilings:  map[string]uint64{},
	}
	go k.run(ctx)
	return k
}

// NextBlock returns the first of n consecutive etags of a folded database, 1 ≤ n ≤
// etag.MaxBlock. Its errors are those of package etag.
func (k *Keeper) NextBlock(database string, n int) (uint64, error) {
	switch k.phase.Load() {
	case serving:
		if err := k.cfg.ClusterCheck(); err != nil {
			return 0, etag.StartingError(err.Error())
		}
		if k.isBeyond(database) {
			return 0, etag.ErrTooManyDatabases
		}
		return k.cfg.Counters.NextBlock(database, n)
	case waiting:
		return 0, etag.StartingError("the node waits for the cluster before it gives server-side ids")
	default:
		return 0, etag.ErrClosed
	}
}

// Has reports whether a folded database has a counter. It does not block.
func (k *Keeper) Has(database string) bool { return k.cfg.Counters.Has(database) }

// Ready reports whether etags are handed out.
func (k *Keeper) Ready() bool { return k.phase.Load() == serving }

// Announced takes the cluster's record of this node's etags after an announcement of the
// node. The first announcement decides where the counters continue; of a later one only the
// start number counts, since the cluster then no longer knows how the previous run ended. It
// does not block.
func (k *Keeper) Announced(state *raftlogv1.EtagRecord) {
	k.Floors(state)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.start = max(k.start, state.GetStart())
	if k.view == nil {
		k.view = viewOf(state)
	}
	select {
	case k.announced <- struct{}{}:
	default:
	}
}

// Floors takes the floors of this node's etags, which it has because it shares its tag with
// a node of another cluster. The state calls it when the floors are applied, before the
// operation is answered. It does not block.
func (k *Keeper) Floors(state *raftlogv1.EtagRecord) {
	for _, d := range state.GetCeilings() {
		k.cfg.Counters.Raise(d.GetDatabase(), d.GetFloor())
	}
	if state.GetFloor() > 0 {
		k.cfg.Counters.RaiseAll(state.GetFloor())
	}
}

func viewOf(state *raftlogv1.EtagRecord) *etag.ClusterView {
	view := &etag.ClusterView{
		Start: state.GetStart(), Clean: state.GetClean(),
		Databases: make(map[string]etag.ClusterDatabase, len(state.GetCeilings())),
	}
	for _, d := range state.GetCeilings() {
		view.Databases[d.GetDatabase()] = etag.ClusterDatabase{Ceiling: d.GetCeiling(), Last: d.GetLast()}
	}
	return view
}

// run is the keeper's loop. It owns the fields below "belong to the loop".
func (k *Keeper) run(ctx context.Context) {
	defer close(k.done)
	k.awaitCluster(ctx)
	k.takeOver()
	k.phase.CompareAndSwap(waiting, serving)
	backoff := raiseMinBackoff
	for {
		var again <-chan time.Time
		reservations := k.cfg.Counters.Reservations()
		switch err := k.work(ctx); {
		case err != nil && ctx.Err() == nil:
			k.logFailure(ctx, err, backoff)
			again, backoff = time.After(backoff), min(2*backoff, raiseMaxBackoff)
			reservations = nil // A busy node would try again at once, each time.
		case k.beyond.Load() != nil:
			again, backoff = time.After(raiseMaxBackoff), raiseMinBackoff // The limit may be raised.
		default:
			backoff = raiseMinBackoff
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-k.announced:
		case <-reservations:
		}
	}
}

// logFailure warns of the first failure in a row only: a node that is cut off keeps trying.
func (k *Keeper) logFailure(ctx context.Context, err error, pause time.Duration) {
	level := slog.LevelDebug
	if pause == raiseMinBackoff {
		level = slog.LevelWarn
	}
	k.cfg.Logger.Log(ctx, level, "the cluster's ceilings of server-side etags could not be raised; trying again",
		"error", err, "pause", pause)
}

func (k *Keeper) awaitCluster(ctx context.Context) {
	timer := time.NewTimer(max(k.cfg.StartWait, 0))
	defer timer.Stop()
	select {
	case <-k.announced:
	case <-ctx.Done():
	case <-timer.C:
		select {
		case <-k.announced:
		default:
			k.cfg.Logger.Warn("no cluster has answered yet: a node that has its tag gives server-side ids from its disk alone",
				"waited", k.cfg.StartWait)
		}
	}
}

func (k *Keeper) work(ctx context.Context) error {
	if !k.takeOver() {
		return nil
	}
	err := k.recordStart()
	return errors.Join(err, k.raiseCeilings(ctx))
}

// takeOver reconciles the counters with the first announcement, once, and reports whether
// there was one. A late announcement has the same effect as an early one: the state of the
// disk at the start is compared.
func (k *Keeper) takeOver() bool {
	k.mu.Lock()
	view := k.view
	k.mu.Unlock()
	if view == nil || k.reconciled {
		return k.reconciled
	}
	disk := k.cfg.Counters.Opened()
	decision := etag.Reconcile(disk, view)
	for _, r := range decision.Raises {
		k.cfg.Counters.Raise(r.Database, r.Floor)
	}
	for database, known := range view.Databases {
		k.ceilings[database] = known.Ceiling
	}
	k.recorded = disk.Start
	k.reconciled = true
	k.logDecision(decision)
	return true
}

func (k *Keeper) logDecision(d etag.Decision) {
	for _, b := range d.Behind {
		k.cfg.Logger.Warn("the data directory was set back to an older copy: server-side ids go on above the cluster's ceiling",
			"database", b.Database, "disk", b.Disk, "known", b.Known)
	}
	if d.MissedStarts > 0 {
		k.cfg.Logger.Warn("the data directory does not know of starts that the cluster has counted: it may have been set back to an older copy",
			"starts", d.MissedStarts)
	}
	k.cfg.Logger.Info("server-side etags go on", "exactly", d.Exact, "raised", len(d.Raises))
}

// recordStart writes a new start number to the disk, so that the next start can detect an
// older copy.
func (k *Keeper) recordStart() error {
	start := k.startNumber()
	if start <= k.recorded {
		return nil
	}
	if err := k.cfg.Counters.Started(start); err != nil {
		return fmt.Errorf("record start number %d: %w", start, err)
	}
	k.recorded = start
	return nil
}

func (k *Keeper) startNumber() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.start
}

// Stop ends the keeper: it hands out no more etags, and writes their exact values to the
// disk, and then, within 2 s and ctx, to the cluster. It takes at most 4 s and the time to
// close the counters. It must be called while the node can still
// propose, so before leadership is transferred. An error means that the next start will leave
// a gap, and nothing worse. Further calls return the same error.
func (k *Keeper) Stop(ctx context.Context) error {
	k.stopOnce.Do(func() { k.stopErr = k.stop(ctx) })
	return k.stopErr
}

func (k *Keeper) stop(ctx context.Context) error {
	k.phase.Store(stopped)
	k.cancel()
	compared := k.awaitLoop(ctx)
	if err := k.cfg.Counters.Close(); err != nil {
		return fmt.Errorf("write the last etags: %w", err)
	}
	if !compared {
		return errNotCompared
	}
	if err := k.tellCleanStop(ctx, k.cfg.Counters.Last()); err != nil {
		return fmt.Errorf("tell the cluster of the clean stop: %w", err)
	}
	return nil
}

// errNotCompared means that the node stopped before its disk was compared with the cluster's
// record. The announcement may have been answered nevertheless; the values of a disk that was
// set back must not be recorded as those of a clean stop, because the next start would trust
// them.
var errNotCompared = errors.New("the etags on disk were not compared with what the cluster knows of them")

// awaitLoop waits for the loop's end and reports whether the loop has compared the disk with
// the cluster. A loop that is blocked by the disk, or by a proposer that ignores its context,
// counts as one that has not; closing the counters concurrently is safe.
func (k *Keeper) awaitLoop(ctx context.Context) (compared bool) {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	select {
	case <-k.done:
		return k.reconciled
	case <-ctx.Done():
		return false
	}
}
