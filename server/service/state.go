package service

import (
	"time"

	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/worker"
)

// State is the read side of the replicated state; *fsm.State implements it. Databases, names,
// tags and ids are folded. Lists are in order of their names' bytes: at most limit names that
// begin with prefix and follow after.
type State interface {
	AppliedIndex() uint64
	Hash() (index, hash uint64)
	Format() uint32
	Counts() fsm.Counts
	Members() []*raftlogv1.Member
	// Membership is Members, with the log index of the last change of them that
	// clients see.
	Membership() (members []*raftlogv1.Member, index uint64)
	Settings() []fsm.Setting
	// Roles is called for most calls, so it must be fast.
	Roles() fsm.Roles
	// CheckJoinToken returns nil if a node may join by a token now.
	CheckJoinToken(tokenHash []byte, tag string, now time.Time) *raftlogv1.Refusal
	// Snapshot is the state as it is now; its user closes it.
	Snapshot() *fsm.Snapshot
	// PreviewMerge says what a merge would change.
	PreviewMerge(database string, m *raftlogv1.Merge) ([]fsm.MergeChange, *raftlogv1.MergeResult)
	// Databases are all that were ever used, in any order.
	Databases() []string

	Identity(database, name string) (identity.Counter, bool)
	Identities(database, prefix, after string, limit int) []fsm.NamedIdentity
	HiLo(database, tag string) (hilo.Counter, bool)
	HiLos(database, prefix, after string, limit int) []fsm.NamedHiLo
	Claims(database, prefix, after string, limit int) []string
	// PreviewSeries says what the definition of a series would do, or why it would be refused.
	PreviewSeries(database string, now time.Time, m *raftlogv1.SeriesDefine) (fsm.SeriesPreview, *raftlogv1.Refusal)
	SeriesList(database, prefix, after string, limit int) []fsm.NamedSeries
	Pools(database, prefix, after string, limit int, now time.Time) []fsm.NamedPool
	// ReadPool is as ReadSeries.
	ReadPool(database, name string, read func(*worker.Pool)) bool
	// ReadSeries returns false if there is no such series. read keeps nothing of it, and is
	// quick: nothing is applied until it returns.
	ReadSeries(database, name string, read func(fsm.NamedSeries, *series.Series)) bool
}
