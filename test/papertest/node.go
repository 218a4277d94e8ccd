// Package papertest runs one node of the Raft library behind the guards of this program, and
// lets a test be all the others. Its own tests compare the node with the paper, sentence by
// sentence.
package papertest

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftguard"
	"github.com/idnode/idnode/cluster/raftlogger"
	"github.com/idnode/idnode/cluster/transport"
	"github.com/idnode/idnode/cluster/witness"
)

// Node is one node of the Raft library, A, as this program runs it: behind its
// transport, on its store. The test is all other nodes: it sends what it wants, and
// answers what it gets. Time is virtual.
type Node struct {
	T       *testing.T
	Disk    *disk
	library library
	machine *machine
	Network network
	Options Options
	Self    *transport.Transport
	Raft    *raft.Raft
	Others  map[string]*Peer
}

// Options say with what A starts.
type Options struct {
	// Terms are those of the entries in its log. The first one is the configuration.
	Terms []uint64
	// Term is its current term; at least that of the newest entry.
	Term uint64
	// Voters are those of the configuration; nil means A, B and C.
	Voters []string
	// most is how many entries a request carries; 0 means as many as usual.
	most int
	// campaigns lets A campaign when it hears no leader for a second.
	campaigns bool
}

func Run(t *testing.T, o Options, run func(p *Node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &Node{T: t, Options: o, Disk: newDisk(), Network: network{}, Others: map[string]*Peer{}}
		if p.Options.Voters == nil {
			p.Options.Voters = []string{"A", "B", "C"}
		}
		p.fill()
		for _, tag := range []string{"B", "C", "D", "E"} {
			p.Others[tag] = newPeer(p.listen(tag, noSnapshot))
		}
		p.start()
		defer p.close()
		run(p)
	})
}

// ID returns the Raft name of the node with a tag.
func ID(tag string) raft.ServerID {
	return raft.ServerID(strings.Repeat("0", 31) + strings.ToLower(tag))
}

func configuration(voters ...string) (c raft.Configuration) {
	for _, tag := range voters {
		c.Servers = append(c.Servers, raft.Server{ID: ID(tag), Address: transport.Address(ID(tag))})
	}
	return c
}

// Header is the header of a request of the node with a tag.
func Header(tag string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(ID(tag)), Addr: []byte(ID(tag))}
}

// Entry is an entry with contents that tell it from others.
func Entry(index, term uint64) *raft.Log {
	return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: fmt.Appendf(nil, "%d@%d", index, term)}
}

// entries are entries that follow prev, of the terms.
func entries(prev uint64, terms ...uint64) (out []*raft.Log) {
	for i, term := range terms {
		out = append(out, Entry(prev+1+uint64(i), term))
	}
	return out
}

// configurationEntry is an entry with a configuration.
func configurationEntry(index, term uint64, voters ...string) *raft.Log {
	return &raft.Log{Index: index, Term: term, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(configuration(voters...))}
}

func (p *Node) fill() {
	logs := entries(0, p.Options.Terms...)
	if len(logs) > 0 {
		logs[0] = configurationEntry(1, p.Options.Terms[0], p.Options.Voters...)
		p.Must(p.Disk.StoreLogs(logs))
	}
	p.Must(p.Disk.SetUint64([]byte("CurrentTerm"), p.Options.Term))
}

func (p *Node) Must(err error) {
	p.T.Helper()
	if err != nil {
		p.T.Fatal(err)
	}
}

func (p *Node) start() {
	p.T.Helper()
	bounded, err := raftguard.NewBoundaryStore(p.Disk)
	p.Must(err)
	p.Self = p.listen("A", bounded.Boundary)
	p.machine = &machine{}
	c := raft.DefaultConfig()
	c.LocalID, c.Logger = ID("A"), raftlogger.New(slog.New(slog.DiscardHandler))
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = time.Second, time.Second, time.Second
	c.CommitTimeout, c.MaxAppendEntries, c.TrailingLogs = 10*time.Millisecond, cmp.Or(p.Options.most, raftguard.MaxAppendEntries), 100
	c.SnapshotInterval = 1000 * time.Hour
	if !p.Options.campaigns {
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 1000*time.Hour, 1000*time.Hour, 1000*time.Hour
	}
	fatal := func(err error) { p.T.Error(err) }
	timeouts := raftguard.NewTimeouts(time.Second, time.Second, 10*time.Millisecond, p.Self.EnterTerm, slog.New(slog.DiscardHandler))
	var running atomic.Pointer[raft.Raft]
	needed := func() uint64 {
		end, _ := bounded.Boundary()
		return min(end, p.Self.Needed())
	}
	store := raftguard.NewRaftStore(bounded, raftguard.RaftStoreConfig{
		Committed: p.machine.last, Fatal: fatal, Needed: needed,
		Writing: p.Self.Writing, EnterTerm: timeouts.EnterTerm, Replicates: raftguard.Replicates(c.LocalID, running.Load), WriteFailed: fatal,
	})
	p.Self.HoldAnswers(store.AwaitStable)
	p.library.RaftStore = store
	p.Raft, err = raft.NewRaft(c, p.machine, &p.library, store, bounded.Snapshots(), p.Self)
	p.Must(err)
	running.Store(p.Raft)
	store.Started()
	p.Disk.forget()
}

func noSnapshot() (index, term uint64) { return 0, 0 }

func (p *Node) stop() {
	p.T.Helper()
	p.Must(p.Raft.Shutdown().Error())
	_ = p.Self.Close()
}

func (p *Node) restart() {
	p.stop()
	for _, other := range p.Others {
		other.CloseStreams()
	}
	p.start()
}

func (p *Node) close() {
	done := p.Raft.Shutdown()
	_ = p.Self.Close()
	p.Must(done.Error())
	for _, other := range p.Others {
		other.Stop()
	}
}

func (p *Node) listen(tag string, boundary func() (index, term uint64)) *transport.Transport {
	p.T.Helper()
	return transport.New(transport.Config{
		Listener: p.Network.Listen(tag), ClusterID: []byte("0123456789abcdef"), LocalID: string(ID(tag)), Directory: directory{},
		Witness:    knownDisk{witness.New(nil), time.Now()},
		Voters:     func() []raft.ServerID { return []raft.ServerID{ID(tag)} },
		Configured: func() uint64 { return math.MaxUint64 }, Boundary: boundary, VoteAnswered: func(time.Duration) {},
		LeaderHeard: func(raft.ServerID, uint64, time.Duration) {}, AnswerHeard: func(raft.ServerID, time.Duration) {},
		OnRefused:   func(transport.Peer, transport.Status) {},
		DialContext: p.Network.dial, Logger: slog.New(slog.DiscardHandler),
	})
}

// Append sends entries to A.
func (p *Node) Append(from string, term, prev, prevTerm, commit uint64, logs ...*raft.Log) (resp raft.AppendEntriesResponse) {
	p.T.Helper()
	p.Must(p.Others[from].NetworkTransport.AppendEntries(ID("A"), "", &raft.AppendEntriesRequest{
		RPCHeader: Header(from), Term: term, PrevLogEntry: prev, PrevLogTerm: prevTerm, LeaderCommitIndex: commit, Entries: logs,
	}, &resp))
	p.Disk.record("answer")
	return resp
}

func (p *Node) Vote(from string, term, last, lastTerm uint64) (resp raft.RequestVoteResponse) {
	p.T.Helper()
	p.Must(p.Others[from].RequestVote(ID("A"), "", &raft.RequestVoteRequest{
		RPCHeader: Header(from), Term: term, LastLogIndex: last, LastLogTerm: lastTerm,
	}, &resp))
	p.Disk.record("answer")
	return resp
}

func (p *Node) preVote(from string, term, last, lastTerm uint64) (resp raft.RequestPreVoteResponse) {
	p.T.Helper()
	p.Must(p.Others[from].RequestPreVote(ID("A"), "", &raft.RequestPreVoteRequest{
		RPCHeader: Header(from), Term: term, LastLogIndex: last, LastLogTerm: lastTerm,
	}, &resp))
	return resp
}

// install sends a snapshot to A, whose state is its index.
func (p *Node) install(from string, term, last, lastTerm uint64, voters ...string) (resp raft.InstallSnapshotResponse, err error) {
	p.T.Helper()
	state := fmt.Appendf(nil, "%d", last)
	err = p.Others[from].InstallSnapshot(ID("A"), "", &raft.InstallSnapshotRequest{
		RPCHeader: Header(from), SnapshotVersion: raft.SnapshotVersionMax, Term: term, LastLogIndex: last, LastLogTerm: lastTerm,
		Configuration: raft.EncodeConfiguration(configuration(voters...)), ConfigurationIndex: 1, Size: int64(len(state)),
	}, &resp, bytes.NewReader(state))
	p.Disk.record("answer")
	return resp, err
}

// timeoutNow has A campaign at once.
func (p *Node) timeoutNow(from string) {
	p.T.Helper()
	var resp raft.TimeoutNowResponse
	p.Must(p.Others[from].NetworkTransport.TimeoutNow(ID("A"), "", &raft.TimeoutNowRequest{RPCHeader: Header(from)}, &resp))
}

// log returns the terms in A's log, from its first entry.
func (p *Node) log() (terms []uint64) {
	p.T.Helper()
	first, _ := p.Disk.FirstIndex()
	last, _ := p.Disk.LastIndex()
	for i := first; i > 0 && i <= last; i++ {
		var log raft.Log
		p.Must(p.Disk.GetLog(i, &log))
		terms = append(terms, log.Term)
	}
	return terms
}

func (p *Node) wantLog(terms ...uint64) {
	p.T.Helper()
	if got := p.log(); !slices.Equal(got, terms) {
		p.T.Errorf("the log has terms %v, want %v", got, terms)
	}
}

func (p *Node) wantTerm(term uint64) {
	p.T.Helper()
	onDisk, _ := p.Disk.GetUint64([]byte("CurrentTerm"))
	if got := p.Raft.CurrentTerm(); got != term || onDisk != term {
		p.T.Errorf("the term is %d, and %d on disk, want %d", got, onDisk, term)
	}
}

func (p *Node) wantState(state raft.RaftState) {
	p.T.Helper()
	synctest.Wait()
	if got := p.Raft.State(); got != state {
		p.T.Errorf("A is a %v, want a %v", got, state)
	}
}

// wantWritten checks what was written since it was checked last, and when A answered.
func (p *Node) wantWritten(want ...string) {
	p.T.Helper()
	if got := p.Disk.forget(); !slices.Equal(got, want) {
		p.T.Errorf("written is %v, want %v", got, want)
	}
}

// wantApplied checks what the state machine has got, in this order.
func (p *Node) wantApplied(want ...string) {
	p.T.Helper()
	synctest.Wait()
	if got := p.machine.list(); !slices.Equal(got, want) {
		p.T.Errorf("applied is %v, want %v", got, want)
	}
}

// lead makes A the leader of the term after its own, by votes of the tags, which
// answer from then on.
func (p *Node) lead(votes ...string) {
	p.T.Helper()
	for _, tag := range votes {
		p.Others[tag].answer(grantAll)
	}
	p.timeoutNow(votes[0])
	p.wantState(raft.Leader)
}
