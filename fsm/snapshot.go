package fsm

import (
	"bytes"
	"slices"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/internal/nodeid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/worker"
)

// Snapshot is the state as it was at one log index. It shares memory with the state,
// which copies on write while the Snapshot is held.
//
// A snapshot is written as a magic, then messages of proto/raftlog/v1 that are
// each preceded by their length: one SnapshotHeader, the SnapshotRecords, a
// length of zero, and a SnapshotTrailer with the checksum of everything before
// the length of zero.
type Snapshot struct {
	header *raftlogv1.SnapshotHeader

	databases  []string
	identities table.Frozen[identityValue]
	hidden     table.Frozen[identityValue]
	hilos      table.Frozen[packedHiLo]
	claims     table.Frozen[claimValue]
	released   table.Frozen[struct{}]
	members    []*raftlogv1.Member
	sessions   []session
	etags      []*etagRecord
	requests   []requestShare
	settings   settingStore
	floor      floor
	roles      *roleStore

	membership uint64
	joinTokens []*raftlogv1.JoinTokenCreate
	series     []frozen[series.Frozen]
	pools      []frozen[worker.Frozen]
}

// Snapshot returns the state as it is now. It takes some microseconds, whatever the size
// of the state, but for one for each some hundred thousand numbers of series, for each few
// pools of workers, and for each few principals with request ids. It may be called from any goroutine.
func (s *State) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contents.snapshot()
}

// Close lets go of the memory that the snapshot shares with the state. It is
// not to be called while WriteTo runs.
func (s *Snapshot) Close() { *s = Snapshot{header: s.header} }

// Header returns the header before the records; it must not be changed.
func (s *Snapshot) Header() *raftlogv1.SnapshotHeader { return s.header }

// Index returns the log index the snapshot was taken at.
func (s *Snapshot) Index() uint64 { return s.header.GetAppliedIndex() }

func (c *contents) snapshot() *Snapshot {
	return &Snapshot{
		header: &raftlogv1.SnapshotHeader{
			Format:       snapshotFormat,
			ClusterId:    c.clusterID,
			AppliedIndex: c.applied,
			StateHash:    c.hash(),
			LogFormat:    c.format,
			FoldVersion:  docid.FoldVersion,
			RequestFloor: c.requests.floor,
		},
		databases:  c.databases.names[:len(c.databases.names):len(c.databases.names)],
		identities: c.identities.shown.Freeze(),
		hidden:     c.identities.hidden.Freeze(),
		hilos:      c.hilos.counters.Freeze(),
		claims:     c.claims.claimed.Freeze(),
		released:   c.claims.released.Freeze(),
		members:    c.members.sorted(),
		sessions:   c.sessions.views(),
		etags:      c.etags.sorted(),
		requests:   c.requests.view(),
		settings:   c.settings,
		floor:      c.floor,
		roles:      c.roles,

		membership: c.members.index,
		joinTokens: c.joinTokens.records(),
		series:     freezeAll(&c.series.namedStore, (*series.Series).Freeze),
		pools:      freezeAll(&c.pools.namedStore, (*worker.Pool).Freeze),
	}
}

func compareNodes(a, b nodeid.ID) int { return bytes.Compare(a[:], b[:]) }

func (w *requestWindow) view() []requestShare {
	shares := make([]requestShare, len(w.oldest.shares))
	for i, s := range w.oldest.shares {
		shares[i] = s.frozen()
	}
	return shares
}

// frozen returns the share with a copy of the last chunk: the original is still appended to.
func (s *requestShare) frozen() requestShare {
	v := *s
	v.chunks = slices.Clone(s.chunks)
	last := *v.chunks[len(v.chunks)-1]
	v.chunks[len(v.chunks)-1] = &last
	return v
}

// each calls f for each entry, oldest first, with its result.
func (s *requestShare) each(f func(e *requestEntry, result []byte)) {
	skip := s.first - s.chunks[0].base // Those are forgotten.
	for _, chunk := range s.chunks {
		for i := range chunk.entries[skip:] {
			e := &chunk.entries[skip:][i]
			f(e, chunk.result(e))
		}
		skip = 0
	}
}
