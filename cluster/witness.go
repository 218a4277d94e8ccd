package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/witness"
)

const (
	// witnessEvery is how often the members' disk states are written.
	witnessEvery = time.Second
	// trustLeap is larger than any real number of starts.
	trustLeap = 1 << 32
)

// keyStarts is where the store has the number of the node's starts.
var keyStarts = []byte("IdnodeStarts")

// diskWitness is the state of this node's disk, and the seen state of the others'.
type diskWitness struct {
	*witness.Witness
	storage Storage
	record  *nodeRecord
	roster  *roster
	log     *slog.Logger
	// stored is the disk's state at this start, and floor an index that this node knew
	// to be committed before.
	stored witness.DiskState
	floor  uint64
	begun  time.Time
	raft   atomic.Pointer[raft.Raft]
}

// openWitness counts this start, and checks that the store has what this node knew to be
// committed.
func openWitness(cfg Config, s Store, own *nodeRecord, members *roster, log *slog.Logger) (*diskWitness, error) {
	err := own.update(func(r *member.Record) bool {
		changed := r.SetBack != ""
		r.SetBack = "" // An operator trusts the directory.
		return changed
	})
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	stored, err := countStart(s, cfg.TrustData)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	stored.Trusted = cfg.TrustData
	data, err := cfg.Storage.LoadWitness()
	var known witness.Record
	if err == nil {
		known, err = witness.Decode(data, own.get().ClusterID)
	}
	if err != nil {
		log.Warn("the record of the members' disks cannot be read; it starts empty", "error", err)
	}
	p := &diskWitness{
		Witness: witness.New(known.Members), storage: cfg.Storage, record: own, roster: members, log: log,
		stored: stored, floor: known.Committed, begun: time.Now(),
	}
	switch {
	case cfg.TrustData:
		log.Warn("THE DATA DIRECTORY IS TRUSTED, even if it is an older copy: the other members forget how far they saw this node's disk. What was acknowledged since may be lost, and be given again. Until all members have met this node, or the wait has passed, it elects nobody, and then only the one whose log reaches furthest. Start it without --trust-data the next time",
			"wait", cfg.TrustWait, "log_ends_at", stored.Last, "term", stored.Term, "known_committed", known.Committed)
		p.floor = 0
	case stored.Last < known.Committed:
		return nil, setBackError(fmt.Sprintf("entry %d was committed, and the log ends at %d", known.Committed, stored.Last))
	}
	return p, nil
}

// countStart counts this start in the store, and returns the disk's state. A trusted
// directory continues above any number that a member may have seen: a member that is down
// does not learn that the directory is trusted.
func countStart(s Store, trusted bool) (p witness.DiskState, err error) {
	if p.Starts, err = numberIn(s, keyStarts); err != nil {
		return p, err
	}
	p.Starts++
	if trusted {
		p.Starts += trustLeap
	}
	if err := s.SetUint64(keyStarts, p.Starts); err != nil {
		return p, err
	}
	if p.Term, err = numberIn(s, keyTerm); err != nil {
		return p, err
	}
	p.Last, p.LastTerm, err = endOf(s)
	return p, err
}

// endOf returns the index and the term of the newest entry, or of the newest snapshot's end.
func endOf(s Store) (last, term uint64, err error) {
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

// numberIn returns a number of the store, 0 if it was never set. The library, too,
// detects that case by the error's text.
func numberIn(s Store, key []byte) (uint64, error) {
	n, err := s.GetUint64(key)
	if err != nil && err.Error() == "not found" {
		return 0, nil
	}
	return n, err
}

// Own implements transport.Witness.
func (p *diskWitness) Own() witness.DiskState {
	now, r := p.stored, p.raft.Load()
	now.Age = p.age()
	if r == nil {
		return now
	}
	stats := r.Stats()
	now.Last, now.LastTerm = statOf(stats, "last_log_index"), statOf(stats, "last_log_term")
	if snapshot := statOf(stats, "last_snapshot_index"); snapshot >= now.Last {
		now.Last, now.LastTerm = snapshot, statOf(stats, "last_snapshot_term")
	}
	now.Term = r.CurrentTerm() // After Last: see witness.DiskState.
	now.Committed = min(r.CommitIndex(), now.Last)
	return now
}

// age returns how long this process has run.
func (p *diskWitness) age() time.Duration { return time.Since(p.begun) }

// statOf returns a number of the library's figures, which it gives as text. Nothing else of
// it has the term of the last entry.
func statOf(stats map[string]string, name string) uint64 {
	n, _ := strconv.ParseUint(stats[name], 10, 64) // It always is one.
	return n
}

// reached returns the term on this node's disk, and an index that it knows to be committed.
func (p *diskWitness) reached() (term, committed uint64) {
	r := p.raft.Load()
	if r == nil {
		return p.stored.Term, 0
	}
	last := r.LastIndex()
	return r.CurrentTerm(), min(r.CommitIndex(), last)
}

// committed returns the newest index that this node knows to be committed.
func (p *diskWitness) committed() uint64 {
	if r := p.raft.Load(); r != nil {
		return max(p.floor, r.CommitIndex())
	}
	return p.floor
}

// keep stores the known disk states of all members. Nothing waits for it, and nothing depends
// on it.
func (p *diskWitness) keep(ctx context.Context) {
	var changes, committed uint64
	for ctx.Err() == nil {
		sleep(ctx, witnessEvery)
		members, newest := p.Known()
		at := p.committed()
		if newest == changes && at == committed {
			continue
		}
		data, err := witness.Record{ClusterID: p.record.get().ClusterID, Committed: at, Members: members}.Encode()
		if err == nil {
			err = p.storage.SaveWitness(data)
		}
		if err != nil {
			p.log.Debug("the record of the members' disks was not written", "error", err)
			continue
		}
		changes, committed = newest, at
	}
}

// electorate returns the voters by Raft's configuration, or, before there is one, the
// future voters. It is called before Raft runs, too.
func (p *diskWitness) electorate() []raft.ServerID {
	var names []raft.ServerID
	if r := p.raft.Load(); r != nil {
		names = votersIn(r.GetConfiguration().Configuration().Servers)
	}
	if len(names) > 0 {
		return names
	}
	for _, m := range p.roster.refresh().members {
		if !m.GetRemoved() && !m.GetWatcher() {
			names = append(names, member.ServerID(m.GetId()))
		}
	}
	return names
}
