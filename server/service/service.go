package service

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"golang.org/x/time/rate"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/etags"
	"github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/snowflake"
)

const (
	// DefaultCallTimeout bounds every call, even of a caller without a deadline. It is above
	// a call's wait for a leader (2 s), so that a call in flight outlives an election and a
	// call without a quorum gets the reason. An operation's wait is bounded to within an
	// eighth of it, so every call ends within 2.5 s, even while the leader's disk hangs and no
	// node has noticed.
	DefaultCallTimeout = 2100 * time.Millisecond
	// DefaultMaxInFlight bounds the calls in flight on one node: a few times the calls of a node in
	// one round of the log, so that the next round is always full, and no call waits for more than
	// a few rounds.
	DefaultMaxInFlight = 4096
)

// Proposer bounds the wait itself, for callers without a deadline: a timer for each call would be
// the most expensive part of a small call.
type Proposer interface {
	op.Proposer
	// ProposeAll commits several operations in one proposal and returns, in their order, the
	// outcome of each.
	ProposeAll(ctx context.Context, operations [][]byte) (results [][]byte, errs []error)
}

// Linearizer makes reads linearizable: after it returns nil, the local state is
// at least as new as the call. Its errors are *outcome.Error.
type Linearizer interface {
	Linearize(ctx context.Context) error
}

// Etags issues this node's own etags; *etags.Keeper implements it. The database is folded. Errors
// are those of package etag.
type Etags interface {
	// NextBlock returns the first of n consecutive etags, 1 ≤ n ≤ MaxBlockSize.
	NextBlock(database string, n int) (first uint64, err error)
	// Has reports whether the database has a counter.
	Has(database string) bool
}

// Reserves gives HiLo numbers that the cluster granted to this node in advance;
// *reserve.Keeper implements it. Databases and tags are folded.
type Reserves interface {
	// Took reports each range that a caller was given, and the operation's principal.
	Took(database, tag string, principal *string, r hilo.Range)
	// Holds reports whether there are numbers of a tag, and the greatest number of the tag that
	// Took was called with.
	Holds(database, tag string) (greatest int64, ok bool)
	// Discard abandons the numbers of a tag up to upTo.
	Discard(database, tag string, upTo int64)
	// CutOff reports whether no quorum is in reach now, and whether that is so for
	// longer than numbers may be given.
	CutOff() (now, tooLong bool)
	// Take returns up to size successive numbers for this caller alone; false if there are none.
	Take(database, tag string, size int64) (hilo.Range, bool)
}

// Config holds a Service's dependencies and limits.
type Config struct {
	Proposer   Proposer
	Linearizer Linearizer
	State      State
	Etags      Etags
	Cluster    Cluster
	// Reserves is nil for a node that keeps none.
	Reserves Reserves
	// Tag returns this node's tag, and whether the cluster has confirmed it. It
	// is called for most calls, so it must be fast.
	Tag func() (tag string, confirmed bool)
	// CaughtUp reports whether the state has been as new as the cluster's at some time since the
	// start. It is called for most calls, too.
	CaughtUp func() bool
	// OwnEtags returns this node's etag counters, in any order, as the caller's own.
	OwnEtags func() []etags.Progress
	// OwnReserves returns the node's reserves, in any order, which belong to the caller, and
	// ReserveTotal their sum; both return nil for a node without reserves.
	OwnReserves  func() []reserve.Left
	ReserveTotal func() *reserve.Total

	// Caller returns the caller of a context that WithCaller did not make.
	Caller func(ctx context.Context) admission.Caller
	// Guarded keeps dangerous calls to the principals in Admins as long as there are
	// no roles; if Admins is empty, all are refused.
	Guarded bool
	Admins  []string

	// Hosts are names and addresses under which the node is called over HTTP, beside those of
	// the members: its own, and configured ones. See CheckHost.
	Hosts []string

	// Audit, if set, records changes of the cluster and denied calls.
	Audit admission.Auditor

	// ServerPrefix, if set, replaces the node tag in the ids of this node's HiLo ranges.
	ServerPrefix string
	// CallTimeout bounds every call, except changes of the membership, which may take
	// longer, and backups; operations are bounded by the Proposer as well. It must be longer
	// than the time the cluster waits for a leader.
	CallTimeout time.Duration
	// MaxInFlight bounds the calls in flight; further calls are refused at once.
	MaxInFlight int
	Version     string
	// Logger logs causes that callers must not see.
	Logger *slog.Logger
	Events Events
}

// nodeTag is Config.Tag.
type nodeTag func() (tag string, confirmed bool)

// confirmed returns the node's tag, or "" before the cluster confirmed it.
func (t nodeTag) confirmed() string {
	if tag, confirmed := t(); confirmed {
		return tag
	}
	return ""
}

// base is embedded by every group of use cases: Control admits calls, proposer takes operations
// through the log, and linearizer makes the state new enough to be read.
type base struct {
	*admission.Control
	proposer   Proposer
	linearizer Linearizer
	state      State
	etags      Etags
	tag        nodeTag
	caughtUp   func() bool
	timeout    time.Duration
	logger     *slog.Logger
	events     *Events
}

// door is the part of admission that APIs ask themselves.
type door interface {
	Principal(ctx context.Context) string
	Rights(ctx context.Context, database, name string) rights.Right
	Grants(ctx context.Context, database string) []rights.Grant
	MayRead(ctx context.Context) bool
	AuditTail(ctx context.Context, n int) ([]json.RawMessage, error)
	Turn(ctx context.Context) (end func(), err error)
	InFlight() int64
	MaxInFlight() int
	Drain(ctx context.Context) error
}

// Service holds the use cases, in groups. It is safe for concurrent use.
type Service struct {
	door
	*ids
	*identities
	*ranges
	*claims
	*numbers
	*workers
	*databases
	*merges
	*backups
	*members
	*roles
	*settings
}

// New returns a Service.
func New(cfg Config) *Service {
	tag := nodeTag(cfg.Tag)
	control := admission.New(admission.Config{
		State: cfg.State, HasEtags: cfg.Etags.Has, CaughtUp: cfg.CaughtUp, From: cfg.Caller, Guarded: cfg.Guarded, Admins: cfg.Admins,
		Audit: cfg.Audit, Tag: tag.confirmed, Timeout: cfg.CallTimeout, MaxInFlight: cfg.MaxInFlight, Logger: cfg.Logger,
		Refused: cfg.Events.Refused,
	})
	base := &base{
		Control: control, proposer: cfg.Proposer, linearizer: cfg.Linearizer, state: cfg.State, etags: cfg.Etags, tag: tag,
		caughtUp: cfg.CaughtUp, timeout: cfg.CallTimeout, logger: cfg.Logger, events: &cfg.Events,
	}
	identities, claims := &identities{base}, &claims{base}
	return &Service{
		door: control, identities: identities, claims: claims,
		ids:       &ids{base, identities, claims},
		ranges:    &ranges{base: base, serverPrefix: cfg.ServerPrefix, reserves: cfg.Reserves, ownReserves: cfg.OwnReserves},
		numbers:   &numbers{base: base},
		workers:   &workers{base: base},
		databases: &databases{base, cfg.OwnEtags},
		merges:    &merges{base},
		backups:   &backups{base: base, version: cfg.Version},
		members: &members{
			base: base, cluster: cfg.Cluster, version: cfg.Version, hosts: cfg.Hosts, reserve: cfg.ReserveTotal,
			refusals: rate.Sometimes{First: 10, Interval: time.Second},
		},
		roles:    &roles{base, len(cfg.Admins) > 0},
		settings: &settings{base},
	}
}

// State is the read side of the replicated state; *fsm.State implements it. Databases, names,
// tags and ids are folded. Lists are in order of their names' bytes: at most limit names that
// begin with prefix and follow after.
type State interface {
	AppliedIndex() uint64
	Hash() (index, hash uint64)
	Format() uint32
	Counts() fsm.Counts
	Members() []*raftlogv1.Member
	// Membership is Members, with the log index of their last change visible to
	// clients.
	Membership() (members []*raftlogv1.Member, index uint64)
	Settings() []fsm.Setting
	// Roles is called for most calls, so it must be fast.
	Roles() fsm.Roles
	CheckJoinToken(tokenHash []byte, tag string) *raftlogv1.Refusal
	Snapshot() *fsm.Snapshot
	PreviewMerge(database string, m *raftlogv1.Merge) ([]fsm.MergeChange, *raftlogv1.MergeResult)
	JudgeMerge(database string, m *raftlogv1.Merge, here, all fsm.Growth) (fsm.Growth, *raftlogv1.Refusal)
	Databases() []string

	Identity(database, name string) (identity.Counter, bool)
	Identities(database, prefix, after string, limit int) []fsm.NamedIdentity
	HiLo(database, tag string) (hilo.Counter, bool)
	HiLos(database, prefix, after string, limit int) []fsm.NamedHiLo
	Claims(database, prefix, after string, limit int) []string
	PreviewSeries(database string, now time.Time, m *raftlogv1.SeriesDefine) (
		forgets series.Forgotten, suspended bool, refused *raftlogv1.Refusal,
	)
	SeriesList(database, prefix, after string, limit int) []fsm.NamedSeries
	Pools(database, prefix, after string, limit int, now time.Time) []fsm.NamedPool
	ReadPool(database, name string, read func(*snowflake.Pool)) bool
	// ReadSeries returns false if there is no such series. read keeps nothing of it, and is
	// quick: nothing is applied until it returns.
	ReadSeries(database, name string, read func(fsm.NamedSeries, *series.Series)) bool
}
