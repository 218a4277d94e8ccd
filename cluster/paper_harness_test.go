package cluster

import (
	"bytes"
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/apply"
	"github.com/idnode/idnode/cluster/raftlogger"
	"github.com/idnode/idnode/cluster/transport"
	"github.com/idnode/idnode/cluster/witness"
)

// paper is one node of the Raft library, A, as this program runs it: behind its
// transport, on its store. The test is all other nodes: it sends what it wants, and
// answers what it gets. Time is virtual.
type paper struct {
	t       *testing.T
	disk    *paperDisk
	machine *paperMachine
	network paperNetwork
	options paperOptions
	self    *transport.Transport
	raft    *raft.Raft
	others  map[string]*paperPeer
}

// paperOptions say with what A starts.
type paperOptions struct {
	// terms are those of the entries in its log. The first one is the configuration.
	terms []uint64
	// term is its current term; at least that of the newest entry.
	term uint64
	// voters are those of the configuration; nil means A, B and C.
	voters []string
	// most is how many entries a request carries; 0 means as many as usual.
	most int
	// campaigns lets A campaign when it hears no leader for a second.
	campaigns bool
}

// paperTest runs a test on a node.
func paperTest(t *testing.T, o paperOptions, run func(p *paper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := &paper{t: t, options: o, disk: newPaperDisk(), network: paperNetwork{}, others: map[string]*paperPeer{}}
		if p.options.voters == nil {
			p.options.voters = []string{"A", "B", "C"}
		}
		p.fill()
		for _, tag := range []string{"B", "C", "D", "E"} {
			p.others[tag] = newPaperPeer(p.listen(tag))
		}
		p.start()
		defer p.close()
		run(p)
	})
}

func paperID(tag string) raft.ServerID {
	return raft.ServerID(strings.Repeat("0", 31) + strings.ToLower(tag))
}

func paperConfiguration(voters ...string) (c raft.Configuration) {
	for _, tag := range voters {
		c.Servers = append(c.Servers, raft.Server{ID: paperID(tag), Address: transport.Address(paperID(tag))})
	}
	return c
}

func paperHeader(tag string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(paperID(tag)), Addr: []byte(paperID(tag))}
}

// entry is an entry with contents that tell it from others.
func entry(index, term uint64) *raft.Log {
	return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: fmt.Appendf(nil, "%d@%d", index, term)}
}

// entries are entries that follow prev, of the terms.
func entries(prev uint64, terms ...uint64) (out []*raft.Log) {
	for i, term := range terms {
		out = append(out, entry(prev+1+uint64(i), term))
	}
	return out
}

// configurationEntry is an entry with a configuration.
func configurationEntry(index, term uint64, voters ...string) *raft.Log {
	return &raft.Log{Index: index, Term: term, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(paperConfiguration(voters...))}
}

// fill writes what A has before it starts.
func (p *paper) fill() {
	logs := entries(0, p.options.terms...)
	if len(logs) > 0 {
		logs[0] = configurationEntry(1, p.options.terms[0], p.options.voters...)
		p.must(p.disk.StoreLogs(logs))
	}
	p.must(p.disk.SetUint64([]byte("CurrentTerm"), p.options.term))
}

func (p *paper) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// start starts A on its disk.
func (p *paper) start() {
	p.t.Helper()
	p.self = p.listen("A")
	p.machine = &paperMachine{}
	c := raft.DefaultConfig()
	c.LocalID, c.Logger = paperID("A"), raftlogger.New(slog.New(slog.DiscardHandler))
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = time.Second, time.Second, time.Second
	c.CommitTimeout, c.MaxAppendEntries, c.TrailingLogs = 10*time.Millisecond, cmp.Or(p.options.most, maxAppendEntries), 100
	c.SnapshotInterval = 1000 * time.Hour
	if !p.options.campaigns {
		c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 1000*time.Hour, 1000*time.Hour, 1000*time.Hour
	}
	bounded, err := apply.NewBoundaryStore(p.disk)
	p.must(err)
	elections := newElectionTimeout(time.Second, slog.New(slog.DiscardHandler))
	elections.refusePreVotes = p.self.EnterTerm
	store := apply.NewRaftStore(bounded, p.machine.last, func(err error) { p.t.Error(err) }, func() uint64 { return min(bounded.Boundary(), p.self.Needed()) }, p.self.Writing, elections.enterTerm)
	p.raft, err = raft.NewRaft(c, p.machine, store, store, bounded.Snapshots(), p.self)
	p.must(err)
	store.Started()
	p.disk.forget()
}

// stop ends A; its disk stays.
func (p *paper) stop() {
	p.t.Helper()
	p.must(p.raft.Shutdown().Error())
	_ = p.self.Close()
}

func (p *paper) restart() {
	p.stop()
	for _, other := range p.others {
		other.CloseStreams()
	}
	p.start()
}

func (p *paper) close() {
	done := p.raft.Shutdown()
	_ = p.self.Close()
	p.must(done.Error())
	for _, other := range p.others {
		other.close()
	}
}

// listen starts the transport of a node.
func (p *paper) listen(tag string) *transport.Transport {
	p.t.Helper()
	t, err := transport.New(transport.Config{
		Listener: p.network.listen(tag), ClusterID: []byte("0123456789abcdef"), LocalID: string(paperID(tag)), Directory: paperDirectory{},
		Witness:     &diskWitness{Witness: witness.New(nil), stored: witness.DiskState{Starts: 1, Last: math.MaxUint64, Term: math.MaxUint64, Trusted: true}, begun: time.Now()},
		DialContext: p.network.dial, Logger: slog.New(slog.DiscardHandler),
	})
	p.must(err)
	return t
}

// append sends entries to A.
func (p *paper) append(from string, term, prev, prevTerm, commit uint64, logs ...*raft.Log) (resp raft.AppendEntriesResponse) {
	p.t.Helper()
	p.must(p.others[from].NetworkTransport.AppendEntries(paperID("A"), "", &raft.AppendEntriesRequest{
		RPCHeader: paperHeader(from), Term: term, PrevLogEntry: prev, PrevLogTerm: prevTerm, LeaderCommitIndex: commit, Entries: logs,
	}, &resp))
	p.disk.record("answer")
	return resp
}

// vote asks A for its vote.
func (p *paper) vote(from string, term, last, lastTerm uint64) (resp raft.RequestVoteResponse) {
	p.t.Helper()
	p.must(p.others[from].RequestVote(paperID("A"), "", &raft.RequestVoteRequest{
		RPCHeader: paperHeader(from), Term: term, LastLogIndex: last, LastLogTerm: lastTerm,
	}, &resp))
	p.disk.record("answer")
	return resp
}

// preVote asks A whether it would vote.
func (p *paper) preVote(from string, term, last, lastTerm uint64) (resp raft.RequestPreVoteResponse) {
	p.t.Helper()
	p.must(p.others[from].RequestPreVote(paperID("A"), "", &raft.RequestPreVoteRequest{
		RPCHeader: paperHeader(from), Term: term, LastLogIndex: last, LastLogTerm: lastTerm,
	}, &resp))
	return resp
}

// install sends a snapshot to A, whose state is its index.
func (p *paper) install(from string, term, last, lastTerm uint64, voters ...string) (resp raft.InstallSnapshotResponse, err error) {
	p.t.Helper()
	state := fmt.Appendf(nil, "%d", last)
	err = p.others[from].InstallSnapshot(paperID("A"), "", &raft.InstallSnapshotRequest{
		RPCHeader: paperHeader(from), SnapshotVersion: raft.SnapshotVersionMax, Term: term, LastLogIndex: last, LastLogTerm: lastTerm,
		Configuration: raft.EncodeConfiguration(paperConfiguration(voters...)), ConfigurationIndex: 1, Size: int64(len(state)),
	}, &resp, bytes.NewReader(state))
	p.disk.record("answer")
	return resp, err
}

// timeoutNow has A campaign at once.
func (p *paper) timeoutNow(from string) {
	p.t.Helper()
	var resp raft.TimeoutNowResponse
	p.must(p.others[from].TimeoutNow(paperID("A"), "", &raft.TimeoutNowRequest{RPCHeader: paperHeader(from)}, &resp))
}

// log returns the terms in A's log, from its first entry.
func (p *paper) log() (terms []uint64) {
	p.t.Helper()
	first, _ := p.disk.FirstIndex()
	last, _ := p.disk.LastIndex()
	for i := first; i > 0 && i <= last; i++ {
		var log raft.Log
		p.must(p.disk.GetLog(i, &log))
		terms = append(terms, log.Term)
	}
	return terms
}

func (p *paper) wantLog(terms ...uint64) {
	p.t.Helper()
	if got := p.log(); !slices.Equal(got, terms) {
		p.t.Errorf("the log has terms %v, want %v", got, terms)
	}
}

func (p *paper) wantTerm(term uint64) {
	p.t.Helper()
	onDisk, _ := p.disk.GetUint64([]byte("CurrentTerm"))
	if got := p.raft.CurrentTerm(); got != term || onDisk != term {
		p.t.Errorf("the term is %d, and %d on disk, want %d", got, onDisk, term)
	}
}

func (p *paper) wantState(state raft.RaftState) {
	p.t.Helper()
	synctest.Wait()
	if got := p.raft.State(); got != state {
		p.t.Errorf("A is a %v, want a %v", got, state)
	}
}

// wantWritten checks what was written since it was checked last, and when A answered.
func (p *paper) wantWritten(want ...string) {
	p.t.Helper()
	if got := p.disk.forget(); !slices.Equal(got, want) {
		p.t.Errorf("written is %v, want %v", got, want)
	}
}

// wantApplied checks what the state machine has got, in this order.
func (p *paper) wantApplied(want ...string) {
	p.t.Helper()
	synctest.Wait()
	if got := p.machine.list(); !slices.Equal(got, want) {
		p.t.Errorf("applied is %v, want %v", got, want)
	}
}

// lead makes A the leader of the term after its own, by votes of the tags, which
// answer from then on.
func (p *paper) lead(votes ...string) {
	p.t.Helper()
	for _, tag := range votes {
		p.others[tag].answer(grantAll)
	}
	p.timeoutNow(votes[0])
	p.wantState(raft.Leader)
}
