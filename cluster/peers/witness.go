package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/cluster/witness"
	"github.com/idnode/idnode/internal/dirfile"
)

const (
	// witnessEvery is the interval at which the members' disk states are written.
	witnessEvery = time.Second
	// trustLeap is larger than any real number of starts.
	trustLeap = 1 << 32
)

var keyStarts = []byte("IdnodeStarts")

// WitnessStorage stores the known states of all members' disks: see cluster.Storage.
type WitnessStorage interface {
	LoadWitness() ([]byte, error)
	SaveWitness(data []byte) error
}

// WitnessConfig configures a Witness.
type WitnessConfig struct {
	Storage WitnessStorage
	Store   raftguard.Store
	Record  *member.NodeRecord
	Table   *Table
	// TrustData means that an operator trusts the data directory, and trustWait is how
	// long elections wait for all members then.
	TrustData bool
	TrustWait time.Duration
	Log       *slog.Logger
}

// Witness is the state of this node's disk, and the seen state of the others'.
type Witness struct {
	*witness.Witness
	cfg WitnessConfig
	// stored is the disk's state at this start, and floor an index that this node knew
	// to be committed before. unknown is what a later program recorded.
	stored  witness.DiskState
	floor   uint64
	unknown dirfile.Unknown
	begun   time.Time
	raft    atomic.Pointer[raft.Raft]
	// savedChanges and savedCommitted are the values of the last Save.
	savedChanges, savedCommitted uint64
}

// OpenWitness counts this start, and checks that the store holds all entries that this node has
// recorded as committed.
func OpenWitness(cfg WitnessConfig) (*Witness, error) {
	err := cfg.Record.Update(func(r *member.Record) bool {
		changed := r.SetBack != ""
		r.SetBack = "" // An operator trusts the directory.
		return changed
	})
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	stored, err := countStart(cfg.Store, cfg.TrustData)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	stored.Trusted = cfg.TrustData
	data, err := cfg.Storage.LoadWitness()
	var known witness.Record
	if err == nil {
		known, err = witness.Decode(data, cfg.Record.Get().ClusterID)
	}
	if err != nil {
		cfg.Log.Warn("the record of the members' disks cannot be read; it starts empty", "error", err)
	}
	p := &Witness{
		Witness: witness.New(known.Members), cfg: cfg, stored: stored, floor: known.Committed, unknown: known.Unknown,
		begun: time.Now(),
	}
	switch {
	case cfg.TrustData:
		cfg.Log.Warn("THE DATA DIRECTORY IS TRUSTED, even if it is an older copy: the other members forget how far they saw this node's disk. "+
			"Numbers acknowledged since may be lost, and issued again. Until all members have met this node, or the wait has passed, it "+
			"votes for nobody, and then only for the candidate with the longest log. Start it without --trust-data the next time",
			"wait", cfg.TrustWait, "log_ends_at", stored.Last, "term", stored.Term, "known_committed", known.Committed)
		p.floor = 0
	case stored.Last < known.Committed:
		return nil, member.SetBackError(fmt.Sprintf("entry %d was committed, and the log ends at %d", known.Committed, stored.Last))
	}
	return p, nil
}

// countStart counts this start in the store, and returns the disk's state. A trusted
// directory continues above any number that a member may have seen: a member that is down
// does not learn that the directory is trusted.
func countStart(s raftguard.Store, trusted bool) (p witness.DiskState, err error) {
	if p.Starts, err = raftguard.StoredNumber(s, keyStarts); err != nil {
		return p, err
	}
	p.Starts++
	if trusted {
		p.Starts += trustLeap
	}
	if err := s.SetUint64(keyStarts, p.Starts); err != nil {
		return p, err
	}
	if p.Term, err = raftguard.StoredTerm(s); err != nil {
		return p, err
	}
	p.Last, p.LastTerm, err = endOf(s)
	return p, err
}

// endOf returns the index and the term of the newest entry, or of the newest snapshot's end.
func endOf(s raftguard.Store) (last, term uint64, err error) {
	if last, err = s.LastIndex(); err != nil {
		return 0, 0, err
	}
	var newest raft.Log
	switch err := s.GetLog(last, &newest); {
	case err == nil:
		term = newest.Term
	case last > 0 && !errors.Is(err, raft.ErrLogNotFound):
		return 0, 0, err
	}
	snapshots, err := s.Snapshots().List()
	for _, meta := range snapshots {
		if meta.Index >= last {
			last, term = meta.Index, meta.Term
		}
	}
	return last, term, err
}

// Started sets the running library.
func (p *Witness) Started(r *raft.Raft) { p.raft.Store(r) }

// Running returns the library, nil before it runs.
func (p *Witness) Running() *raft.Raft { return p.raft.Load() }

func (p *Witness) Starts() uint64 { return p.stored.Starts }

// Own implements transport.Witness.
func (p *Witness) Own() witness.DiskState {
	now, r := p.stored, p.raft.Load()
	now.Age = p.Age()
	if r == nil {
		return now
	}
	stats := r.Stats()
	now.Last, now.LastTerm = StatOf(stats, "last_log_index"), StatOf(stats, "last_log_term")
	if snapshot := StatOf(stats, "last_snapshot_index"); snapshot >= now.Last {
		now.Last, now.LastTerm = snapshot, StatOf(stats, "last_snapshot_term")
	}
	now.Term = r.CurrentTerm() // After Last: see witness.DiskState.
	now.Committed = min(r.CommitIndex(), now.Last)
	return now
}

// Age returns the running time of this process.
func (p *Witness) Age() time.Duration { return time.Since(p.begun) }

// StatOf returns a number from the library's statistics, which are texts. The library has no other
// access to the term of the last entry.
func StatOf(stats map[string]string, name string) uint64 {
	n, _ := strconv.ParseUint(stats[name], 10, 64) // Always a number.
	return n
}

// Reached returns the term on this node's disk, and an index that is known to be committed.
func (p *Witness) Reached() (term, committed uint64) {
	r := p.raft.Load()
	if r == nil {
		return p.stored.Term, 0
	}
	last := r.LastIndex()
	return r.CurrentTerm(), min(r.CommitIndex(), last)
}

// Committed returns the newest index that is known to be committed on this node.
func (p *Witness) Committed() uint64 {
	if r := p.raft.Load(); r != nil {
		return max(p.floor, r.CommitIndex())
	}
	return p.floor
}

// Duty saves the witness's knowledge. Nothing waits for it.
func (p *Witness) Duty() duty.Duty {
	return duty.Duty{
		Name: "witness", Every: witnessEvery, Check: duty.Always(p.Save),
		Failed: "the record of the members' disks was not written", Level: slog.LevelDebug,
	}
}

// Save stores the known disk states of all members, and the committed index, if they have changed.
// One caller saves at a time: the duty, and finally the end of the node, since a node that starts
// again must notice whether it was set back meanwhile.
func (p *Witness) Save(context.Context) error {
	members, newest := p.Known()
	at := p.Committed()
	if newest == p.savedChanges && at == p.savedCommitted {
		return nil
	}
	record := witness.Record{ClusterID: p.cfg.Record.Get().ClusterID, Committed: at, Members: members, Unknown: p.unknown}
	if err := p.cfg.Storage.SaveWitness(record.Encode()); err != nil {
		return err
	}
	p.savedChanges, p.savedCommitted = newest, at
	return nil
}

// Electorate returns the voters by Raft's configuration, or, before there is one, the
// future voters. It is called before Raft runs, too.
func (p *Witness) Electorate() []raft.ServerID {
	var names []raft.ServerID
	if r := p.raft.Load(); r != nil {
		names = votersIn(r.GetConfiguration().Configuration().Servers)
	}
	if len(names) > 0 {
		return names
	}
	for _, m := range p.cfg.Table.Refresh().Members {
		if !m.GetRemoved() && !m.GetWatcher() {
			names = append(names, member.ServerID(m.GetId()))
		}
	}
	return names
}
