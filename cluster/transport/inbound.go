package transport

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/raftguard"
)

// inbound is between the connections and Raft. It inspects each request before Raft does,
// and passes the requests on in the order of their arrival.
//
// Invariant: its goroutine never waits for Raft alone. While Raft's main goroutine is
// busy, requests queue here, and later requests are still inspected. The queue is bounded
// by the number of connections, each of which carries one request at a time.
type inbound struct {
	s      *stream
	from   <-chan raft.RPC
	toRaft chan raft.RPC
	// queue holds the requests that Raft has not taken yet.
	queue []raft.RPC
	// install is the snapshot that Raft has or gets next; waiting are the later requests.
	install *install
	waiting []*install
	// writing is the newest term of the entries that Raft is writing to the log; 0 if it is
	// not writing.
	writing atomic.Uint64
	// preVotes are refused for a term that this node has entered.
	preVotes raftguard.PreVotes
	// header is the header of this node's answers.
	header raft.RPCHeader
	// leader is the leader of the newest term in which Raft has got, or gets next, a leader's
	// request. Its Connected is not set.
	mu     sync.Mutex
	leader Contact
	// campaigns has the terms after which this node campaigns; campaign is the campaign in
	// the queue, nil if there is none.
	campaigns chan uint64
	campaign  *campaign
	// installing means that a snapshot is being installed, or is waiting for that.
	installing atomic.Bool
	// newest is the newest term of any request that Raft may adopt.
	newest uint64
	gate   *gate
}

func newInbound(s *stream, from <-chan raft.RPC) *inbound {
	i := &inbound{
		s: s, from: from, toRaft: make(chan raft.RPC), campaigns: make(chan uint64),
		header: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(s.self), Addr: []byte(Address(s.self))},
	}
	i.gate = &gate{s: s, led: i.led, trusted: s.cfg.Witness.Own().Trusted}
	return i
}

func (i *inbound) run(ctx context.Context) {
	for {
		var toRaft chan<- raft.RPC
		var next raft.RPC
		if len(i.queue) > 0 {
			toRaft, next = i.toRaft, i.queue[0]
		}
		select {
		case rpc := <-i.from:
			if i.inspect(rpc) {
				i.queue = append(i.queue, rpc)
			}
			i.withdrawCampaign()
		case term := <-i.campaigns:
			i.queueCampaign(term)
		case toRaft <- next:
			i.queue[0] = raft.RPC{} // Free the entries.
			i.queue = i.queue[1:]
			i.taken(next)
		case answer := <-i.install.pending():
			i.answered(answer)
		case <-i.install.ticks():
			i.look()
		case <-ctx.Done():
			return
		}
	}
}

// inspect checks a request, and may change it. It reports whether Raft gets the request;
// otherwise the request is answered here.
func (i *inbound) inspect(rpc raft.RPC) (pass bool) {
	switch r := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		i.leads(r.Term, r.ID)
		i.witnessed(r)
		r.LeaderCommitIndex = raftguard.ProvenCommit(r)
		if i.ackHeartbeat(rpc) {
			return false
		}
		i.join(r)
	case *raft.InstallSnapshotRequest:
		i.leads(r.Term, r.ID)
		i.installing.Store(true)
		i.waiting = append(i.waiting, newInstall(rpc, r))
		i.nextInstall()
		return false
	case *raft.RequestVoteRequest:
		i.newest = max(i.newest, r.Term)
		return i.gate.pass(rpc)
	case *raft.RequestPreVoteRequest:
		return i.gate.pass(rpc) && i.voteLeft(rpc, r)
	case *raft.TimeoutNowRequest:
		return i.gate.pass(rpc)
	}
	return true
}

func (i *inbound) leads(term uint64, id []byte) {
	now := time.Now()
	i.mu.Lock()
	switch {
	case term > i.leader.Term:
		i.leader = Contact{Term: term, Leader: raft.ServerID(id), Heard: now}
	case term == i.leader.Term:
		i.s.cfg.LeaderHeard(i.leader.Leader, term, now.Sub(i.leader.Heard))
		i.leader.Heard = now
	}
	i.mu.Unlock()
	if i.campaign != nil && term >= i.campaign.term {
		i.dropCampaign() // The leader's heartbeats are answered while Raft writes, so it still leads.
	}
	i.newest = max(i.newest, term)
}

// contact returns the newest leader, of term 0 if there was none.
func (i *inbound) contact() Contact {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.leader
}

// led returns the newest term of a leader, 0 if there was none.
func (i *inbound) led() uint64 { return i.contact().Term }

// witnessed reports to the Witness the disk state that a request proves of the leader: its term and
// its committed entries. Newer entries may be sent before they are on the leader's disk.
func (i *inbound) witnessed(r *raft.AppendEntriesRequest) {
	if len(r.ID) > 0 {
		i.s.cfg.Witness.Acknowledged(string(r.ID), r.Term, 0, r.LeaderCommitIndex)
	}
}

// join leaves out the entries that the newest snapshot covers, and lets the rest follow its end. Up to there all is
// committed and here (Raft paper, section 7). The library looks for the previous entry in the log alone, which may not
// have it any more. It would reject all that a leader sends whose own snapshot is older than this one, until that
// leader takes another.
//
// Invariant: nothing of another history is left out. One that begins again before the end of the snapshot, as after
// a recovery or on a leader whose disk was set back, has another term there, or a newer one before.
func (i *inbound) join(r *raft.AppendEntriesRequest) {
	end, term := i.s.cfg.Boundary()
	follows := func(index, of uint64) bool { return index < end && of <= term || index == end && of == term }
	if end == 0 || r.PrevLogEntry == 0 && len(r.Entries) == 0 || !follows(r.PrevLogEntry, r.PrevLogTerm) {
		return
	}
	covered := 0
	for ; covered < len(r.Entries) && r.Entries[covered].Index <= end; covered++ {
		if !follows(r.Entries[covered].Index, r.Entries[covered].Term) {
			return
		}
	}
	// Without a previous entry the library compares nothing.
	r.PrevLogEntry, r.PrevLogTerm, r.Entries = 0, 0, r.Entries[covered:]
}

// ackHeartbeat answers a heartbeat of the leader whose snapshot Raft is installing, or whose
// entries Raft is writing. It answers none once a request of a newer term was seen: Raft may
// have handled that request between the question and the snapshot, so that it only reads the
// snapshot to its end, or may be writing entries of the newer leader.
func (i *inbound) ackHeartbeat(rpc raft.RPC) bool {
	r, ok := rpc.Command.(*raft.AppendEntriesRequest)
	switch {
	case !ok || i.newest > r.Term || r.PrevLogEntry != 0 || len(r.Entries) != 0:
		return false
	case i.install.beats(r):
		i.install.beat(rpc)
	case i.writes(r):
		rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: i.header, Term: r.Term, Success: true}, nil)
	default:
		return false
	}
	return true
}

func (i *inbound) nextInstall() {
	if i.install != nil || len(i.waiting) == 0 {
		return
	}
	i.install, i.waiting = i.waiting[0], i.waiting[1:]
	question := i.install.question()
	i.join(question)
	i.queue = append(i.queue, raft.RPC{RespChan: i.install.answers, Command: question})
}

// taken records that Raft has taken a request. If that is a snapshot, the queued heartbeats
// are answered.
func (i *inbound) taken(rpc raft.RPC) {
	if i.isCampaign(rpc) {
		i.campaign = nil
	}
	if _, ok := rpc.Command.(*raft.InstallSnapshotRequest); !ok {
		return
	}
	i.install.start()
	i.queue = slices.DeleteFunc(i.queue, i.ackHeartbeat)
}

// look closes the connection of a snapshot whose sender is paused or gone, if another node
// may lead. A live sender sends the snapshot again.
func (i *inbound) look() {
	if i.install.look() && i.contested() {
		sender := string(i.install.request.ID)
		i.s.conns.closeIf(func(c *conn) bool { return c.peer == sender })
	}
}

// contested reports whether a node other than the sender of the snapshot that Raft reads may
// lead: the leader of a newer term, or a node whose pre-vote is queued.
func (i *inbound) contested() bool {
	return i.newest > i.install.request.Term || slices.ContainsFunc(i.queue, func(rpc raft.RPC) bool {
		_, ok := rpc.Command.(*raft.RequestPreVoteRequest)
		return ok
	})
}

func (i *inbound) answered(answer raft.RPCResponse) {
	s := i.install
	if log, ok := answer.Response.(*raft.AppendEntriesResponse); ok && answer.Error == nil {
		s.log = log
		if !log.Success {
			i.queue = append(i.queue, s.snapshot())
			return
		}
		i.s.work.Go(s.needless)
	} else {
		s.rpc.RespChan <- answer
	}
	s.stop()
	i.install = nil
	i.nextInstall()
	i.installing.Store(i.install != nil)
}

// EnterTerm refuses pre-votes for term and older terms for the time d: Raft enters the term.
// See raftguard.PreVotes.
func (t *Transport) EnterTerm(term uint64, d time.Duration) { t.inbound.preVotes.Enter(term, d) }

// voteLeft reports whether Raft gets a pre-vote. It is refused here if this node votes for
// another node in its term, or in the term before.
func (i *inbound) voteLeft(rpc raft.RPC, r *raft.RequestPreVoteRequest) bool {
	if !i.preVotes.Refuses(r.Term, i.led()) {
		return true
	}
	rpc.Respond(&raft.RequestPreVoteResponse{RPCHeader: i.header, Term: r.Term}, nil)
	return false
}

// Writing records that Raft writes entries to the log, the newest of which has this term; 0
// means that the write has ended. Raft's main goroutine calls it.
//
// That goroutine answers nothing else meanwhile, so the leader's empty heartbeats are
// answered here: a leader that needs this node for a quorum would lose its lease at each slow
// write, and the next leader would too. The storage watchdog bounds a write, and a leader
// whose entries are not acknowledged steps down.
func (t *Transport) Writing(term uint64) { t.inbound.writing.Store(term) }

// writes reports whether a heartbeat is from the leader whose entries are being written.
//
// Invariant: a heartbeat of a term is answered only while Raft's current term is that term,
// and Raft follows its sender. The entries in flight are of the term, and no request of a
// newer term was seen; so they come from the leader of that term, since a request of a newer
// leader would have been seen. Raft has that term on its disk before it writes the entries,
// and its term cannot change before the write has ended.
func (i *inbound) writes(r *raft.AppendEntriesRequest) bool {
	term := i.writing.Load()
	return term > 0 && term == r.Term
}
