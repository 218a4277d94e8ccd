package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/witness"
)

const (
	// witnessEvery is how often the members' progress is written.
	witnessEvery = time.Second
	// greetFirst is the pause after the first greetings at the start, and grows up to
	// greetEvery. It is well below a heartbeat timeout: elections wait for greetings.
	greetFirst, greetEvery = 70 * time.Millisecond, time.Second
	// patience is the number of pauses, 490 ms in total, after which elections no longer
	// wait for a member that has not answered. That is long for an answer, or for another
	// attempt after a refused connection. Pauses are counted, not time: messages that
	// arrive while this process is paused are read in the next one.
	patience = 3
	// progressFormat is the log format from which every member's program sends its
	// progress.
	progressFormat = 3
	// trustedStarts is more starts than any directory has had.
	trustedStarts = 1 << 32
)

// keyStarts is where the store has the number of the node's starts. Older programs leave
// it unchanged.
var keyStarts = []byte("IdnodeStarts")

// diskWitness is the progress of this node's disk, and the seen progress of the others'.
type diskWitness struct {
	*witness.Witness
	storage Storage
	// stored is the disk's progress at this start, and floor an index that this node knew
	// to be committed before.
	stored witness.Progress
	floor  uint64
	raft   atomic.Pointer[raft.Raft]
}

// openWitness counts this start, and checks that the store has what this node knew to be
// committed.
func (n *Node) openWitness() (*diskWitness, error) {
	err := n.record.update(func(r *member.Record) bool {
		changed := r.SetBack != ""
		r.SetBack = "" // An operator trusts the directory.
		return changed
	})
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	stored, err := countStart(n.store, n.cfg.TrustData)
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	stored.Trusted = n.cfg.TrustData
	data, err := n.cfg.Storage.LoadWitness()
	var known witness.Record
	if err == nil {
		known, err = witness.Decode(data, n.ClusterID())
	}
	if err != nil {
		n.log.Warn("the record of the members' progress cannot be read; it starts empty", "error", err)
	}
	p := &diskWitness{Witness: witness.New(known.Members), storage: n.cfg.Storage, stored: stored, floor: known.Committed}
	switch {
	case n.cfg.TrustData:
		n.log.Warn("THE DATA DIRECTORY IS TRUSTED, even if it is an older copy: the other members forget how far they saw this node's disk. What was acknowledged since may be lost, and be given again. Start it without --trust-data the next time",
			"log_ends_at", stored.Last, "term", stored.Term, "known_committed", known.Committed)
		p.floor = 0
	case stored.Last < known.Committed:
		return nil, setBackError(fmt.Sprintf("entry %d was committed, and the log ends at %d", known.Committed, stored.Last))
	}
	return p, nil
}

// setBack records that others have seen more of this node's disk than it has, and ends
// the node.
func (n *Node) setBack(why string) error {
	err := n.record.update(func(r *member.Record) bool {
		changed := r.SetBack == ""
		r.SetBack = why
		return changed
	})
	err = errors.Join(setBackError(why), err)
	n.lifecycle.fail(err)
	return err
}

func setBackError(why string) error { return fmt.Errorf("cluster: %w: %s", member.ErrSetBack, why) }

// countStart counts this start in the store, and returns the disk's progress. A trusted
// directory continues above any number that a member may have seen: a member that is down
// does not learn that the directory is trusted.
func countStart(s Store, trusted bool) (p witness.Progress, err error) {
	if p.Starts, err = numberIn(s, keyStarts); err != nil {
		return p, err
	}
	p.Starts++
	if trusted {
		p.Starts += trustedStarts
	}
	if err := s.SetUint64(keyStarts, p.Starts); err != nil {
		return p, err
	}
	if p.Term, err = numberIn(s, keyTerm); err != nil {
		return p, err
	}
	if p.Last, err = s.LastIndex(); err != nil {
		return p, err
	}
	snapshots, err := s.Snapshots().List()
	for _, meta := range snapshots {
		p.Last = max(p.Last, meta.Index)
	}
	return p, err
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
func (p *diskWitness) Own() witness.Progress {
	now, r := p.stored, p.raft.Load()
	if r == nil {
		return now
	}
	now.Last = r.LastIndex()
	now.Term = r.CurrentTerm() // After Last: see witness.Progress.
	now.Committed = min(r.CommitIndex(), now.Last)
	return now
}

// committed returns the newest index that this node knows to be committed.
func (p *diskWitness) committed() uint64 {
	if r := p.raft.Load(); r != nil {
		return max(p.floor, r.CommitIndex())
	}
	return p.floor
}

// keepWitness stores the known progress of all members. Nothing waits for it, and nothing
// depends on it.
func (e *engine) keepWitness(ctx context.Context) {
	var changes, committed uint64
	for ctx.Err() == nil {
		sleep(ctx, witnessEvery)
		members, newest := e.witness.Known()
		at := e.witness.committed()
		if newest == changes && at == committed {
			continue
		}
		data, err := witness.Record{ClusterID: e.node.ClusterID(), Committed: at, Members: members}.Encode()
		if err == nil {
			err = e.witness.storage.SaveWitness(data)
		}
		if err != nil {
			e.node.log.Debug("the record of the members' progress was not written", "error", err)
			continue
		}
		changes, committed = newest, at
	}
}

// greetMembers greets all members until each has accepted this process once: if this
// node's disk was set back, a member that knows refuses the greeting.
func (e *engine) greetMembers(ctx context.Context) {
	greetAll(ctx, e.notGreeted, e.transport.StopWaiting, func(id raft.ServerID, done func()) {
		e.node.lifecycle.run(func(ctx context.Context) {
			defer done()
			_ = e.transport.Greet(ctx, id) // It is tried again.
		})
	})
}

// greetAll greets the members in left until none is left. No greeting waits for another.
// It calls stopWaiting once.
func greetAll(ctx context.Context, left func() []raft.ServerID, stopWaiting func(), greet func(id raft.ServerID, done func())) {
	var underWay sync.Map
	pauses := 0
	for pause := greetFirst; ctx.Err() == nil; pause = min(2*pause, greetEvery) {
		members := left()
		if pauses == patience || pauses < patience && len(members) == 0 {
			stopWaiting()
		}
		if len(members) == 0 {
			return
		}
		for _, id := range members {
			if _, is := underWay.LoadOrStore(id, nil); !is {
				greet(id, func() { underWay.Delete(id) })
			}
		}
		sleep(ctx, pause)
		pauses++
	}
}

// notGreeted returns the members that have not accepted this process yet.
func (e *engine) notGreeted() (left []raft.ServerID) {
	for _, m := range e.node.roster.refresh().members {
		if id := member.ServerID(m.GetId()); !m.GetRemoved() && !e.isSelf(m) && !e.transport.Greeted(id) {
			left = append(left, id)
		}
	}
	return left
}

// electorate returns the voters by Raft's configuration, or, before there is one, the
// future voters. It is called before Raft runs, too.
func (e *engine) electorate() []raft.ServerID {
	var names []raft.ServerID
	if r := e.witness.raft.Load(); r != nil {
		for _, s := range r.GetConfiguration().Configuration().Servers {
			if s.Suffrage == raft.Voter {
				names = append(names, s.ID)
			}
		}
	}
	if len(names) > 0 {
		return names
	}
	for _, m := range e.node.roster.refresh().members {
		if !m.GetRemoved() && !m.GetWatcher() {
			names = append(names, member.ServerID(m.GetId()))
		}
	}
	return names
}
