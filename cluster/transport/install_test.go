package transport

import (
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// header is the header of the messages of a node with the given tag.
func header(tag string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(idOf(tag)), Addr: []byte(idOf(tag))}
}

// installing is a node that sends a snapshot to another node, whose Raft is the test.
type installing struct {
	t    *testing.T
	from raft.Transport
	to   raft.ServerID
	raft <-chan raft.RPC
}

// send sends a snapshot of term 3 that ends with entry 10.
func (i installing) send() <-chan error {
	failed := make(chan error, 1)
	go func() {
		var resp raft.InstallSnapshotResponse
		err := i.from.InstallSnapshot(i.to, Address(i.to), &raft.InstallSnapshotRequest{
			RPCHeader: header("B"), SnapshotVersion: raft.SnapshotVersionMax, Term: 3, LastLogIndex: 10, LastLogTerm: 2, Size: 5,
		}, &resp, strings.NewReader("state"))
		if err == nil && !resp.Success {
			err = errors.New("the snapshot was rejected")
		}
		failed <- err
	}()
	return failed
}

// append sends an append, or a heartbeat, and reports whether it succeeded.
func (i installing) append(r *raft.AppendEntriesRequest) <-chan bool {
	done := make(chan bool, 1)
	go func() {
		var resp raft.AppendEntriesResponse
		err := i.from.AppendEntries(i.to, Address(i.to), r, &resp)
		done <- err == nil && resp.Success && resp.Term == r.Term
	}()
	return done
}

// next returns the next request that Raft gets.
func (i installing) next() *raft.RPC {
	i.t.Helper()
	select {
	case rpc := <-i.raft:
		return &rpc
	case <-time.After(10 * time.Second):
		i.t.Fatal("Raft gets no request")
		return nil
	}
}

// asked answers the question that comes before each snapshot.
func (i installing) asked(success bool) {
	i.t.Helper()
	rpc := i.next()
	r, ok := rpc.Command.(*raft.AppendEntriesRequest)
	if !ok || r.PrevLogEntry != 10 || r.PrevLogTerm != 2 || r.Term != 3 || len(r.Entries) != 0 || r.LeaderCommitIndex != 0 {
		i.t.Fatalf("the question is %+v", rpc.Command)
	}
	rpc.Respond(&raft.AppendEntriesResponse{RPCHeader: header("A"), Term: 3, LastLog: 4, Success: success}, nil)
}

func newInstalling(t *testing.T) installing {
	b := newBook()
	a, bare := start(t, b, "A", nil), startBare(t, b, "B")
	return installing{t, bare, raft.ServerID(idOf("A")), a.Consumer()}
}

// TestHeartbeatsAreAnsweredDuringAnInstall: only those of the leader whose snapshot
// it is, and only while Raft is at it.
func TestHeartbeatsAreAnsweredDuringAnInstall(t *testing.T) {
	i := newInstalling(t)
	beat := &raft.AppendEntriesRequest{RPCHeader: header("B"), Term: 3}
	installed := i.send()
	i.asked(false)
	snapshot := i.next()
	for range 3 {
		if !<-i.append(beat) {
			t.Fatal("a heartbeat is not answered while a snapshot is installed")
		}
	}
	others := []*raft.AppendEntriesRequest{
		{RPCHeader: header("B"), Term: 4},
		{RPCHeader: header("B"), Term: 2},
		{RPCHeader: header("C"), Term: 3},
		{RPCHeader: header("B"), Term: 3, PrevLogEntry: 10, PrevLogTerm: 2},
		{RPCHeader: header("B"), Term: 3, Entries: []*raft.Log{{Index: 1, Term: 3}}},
	}
	for _, r := range others {
		done := i.append(r)
		rpc := i.next()
		rpc.Respond(&raft.AppendEntriesResponse{Term: r.Term, Success: true}, nil)
		if !<-done {
			t.Fatalf("%+v was not left to Raft", r)
		}
	}
	snapshot.Respond(&raft.InstallSnapshotResponse{Term: 3, Success: true}, nil)
	must(t, <-installed)
	done := i.append(beat)
	i.next().Respond(&raft.AppendEntriesResponse{Term: 3, Success: true}, nil)
	if !<-done {
		t.Error("a heartbeat after the snapshot was not left to Raft")
	}
}

// TestHeartbeatsBehindASnapshotAreAnswered: they arrived before Raft took it.
func TestHeartbeatsBehindASnapshotAreAnswered(t *testing.T) {
	i := bareInbound(nil)
	i.inspect(raft.RPC{Command: &raft.InstallSnapshotRequest{RPCHeader: header("B"), Term: 3, LastLogIndex: 10, LastLogTerm: 2}})
	i.queue = nil // Raft took the question.
	i.answered(raft.RPCResponse{Response: &raft.AppendEntriesResponse{Term: 3}})
	answer := make(chan raft.RPCResponse, 1)
	beat := raft.RPC{Command: &raft.AppendEntriesRequest{RPCHeader: header("B"), Term: 3}, RespChan: answer}
	if !i.inspect(beat) {
		t.Error("a heartbeat was answered before Raft had the snapshot")
	}
	snapshot := i.queue[0]
	i.queue = []raft.RPC{beat}
	i.taken(snapshot)
	if len(i.queue) > 0 || len(answer) == 0 {
		t.Error("a heartbeat waits behind the snapshot")
	}
}

// TestNoHeartbeatIsAnsweredInATermThatRaftIsNotIn: Raft's answer to the question has a newer
// term.
func TestNoHeartbeatIsAnsweredInATermThatRaftIsNotIn(t *testing.T) {
	i := newInstalling(t)
	installed := i.send()
	i.next().Respond(&raft.AppendEntriesResponse{Term: 4}, nil)
	snapshot := i.next()
	done := i.append(&raft.AppendEntriesRequest{RPCHeader: header("B"), Term: 3})
	i.next().Respond(&raft.AppendEntriesResponse{Term: 4}, nil)
	if <-done {
		t.Error("an old leader's heartbeat succeeded")
	}
	snapshot.Respond(&raft.InstallSnapshotResponse{Term: 4}, nil)
	if err := <-installed; err == nil {
		t.Error("an old leader's snapshot was installed")
	}
}

// TestNoHeartbeatIsAnsweredAfterARequestOfANewerTerm: Raft may have handled it after its
// answer to the question, and reads on a snapshot that it no longer takes.
func TestNoHeartbeatIsAnsweredAfterARequestOfANewerTerm(t *testing.T) {
	for name, tt := range map[string]struct {
		request  any
		answered bool
	}{
		"an append":                 {&raft.AppendEntriesRequest{RPCHeader: header("C"), Term: 4}, false},
		"a snapshot":                {&raft.InstallSnapshotRequest{RPCHeader: header("C"), Term: 4}, false},
		"a request for a vote":      {&raft.RequestVoteRequest{RPCHeader: header("C"), Term: 4}, false},
		"a vote of the same term":   {&raft.RequestVoteRequest{RPCHeader: header("C"), Term: 3}, true},
		"a pre-vote, not of a term": {&raft.RequestPreVoteRequest{RPCHeader: header("C"), Term: 4}, true},
	} {
		i := bareInbound(nil)
		i.inspect(raft.RPC{Command: &raft.InstallSnapshotRequest{RPCHeader: header("B"), Term: 3, LastLogIndex: 10, LastLogTerm: 2}})
		i.inspect(raft.RPC{Command: tt.request})
		i.answered(raft.RPCResponse{Response: &raft.AppendEntriesResponse{Term: 3}})
		i.taken(i.queue[len(i.queue)-1])
		beat := raft.RPC{Command: &raft.AppendEntriesRequest{RPCHeader: header("B"), Term: 3}, RespChan: make(chan raft.RPCResponse, 1)}
		if passed := i.inspect(beat); passed == tt.answered {
			t.Errorf("%s: a heartbeat is answered: %v", name, !passed)
		}
	}
}

// TestASnapshotThatTheLogHasIsNotInstalled: "If existing log entry has same index and
// term as snapshot's last included entry, retain log entries following it and reply"
// (figure 13).
func TestASnapshotThatTheLogHasIsNotInstalled(t *testing.T) {
	i := newInstalling(t)
	installed := i.send()
	i.asked(true)
	must(t, <-installed)
	installed = i.send()
	i.asked(false) // The first one never reached Raft.
	i.next().Respond(&raft.InstallSnapshotResponse{Term: 3, Success: true}, nil)
	must(t, <-installed)
}

// TestTwoSnapshotsAtATime: a retry arrives while Raft reads the first snapshot.
func TestTwoSnapshotsAtATime(t *testing.T) {
	i := newInstalling(t)
	first := i.send()
	i.asked(false)
	snapshot := i.next()
	second := i.send()
	// It is seen when this heartbeat is, or later; then it must not have disturbed.
	if !<-i.append(&raft.AppendEntriesRequest{RPCHeader: header("B"), Term: 3}) {
		t.Error("a heartbeat is not answered")
	}
	snapshot.Respond(&raft.InstallSnapshotResponse{Term: 3, Success: true}, nil)
	must(t, <-first)
	i.asked(true)
	must(t, <-second)
}

// TestAVoteDoesNotWaitForASilentLeader: the leader stops in the middle of a snapshot, as
// a paused process does, and its connection stays. Another node needs the vote of the node
// that reads the snapshot.
func TestAVoteDoesNotWaitForASilentLeader(t *testing.T) {
	t.Parallel()
	b := newBook()
	a, from, candidate := start(t, b, "A", nil), startBare(t, b, "B"), startBare(t, b, "C")
	i := installing{t, from, raft.ServerID(idOf("A")), a.Consumer()}
	rest, silent := io.Pipe()
	defer silent.Close()
	go func() {
		_ = from.InstallSnapshot(i.to, Address(i.to), &raft.InstallSnapshotRequest{
			RPCHeader: header("B"), SnapshotVersion: raft.SnapshotVersionMax, Term: 3, LastLogIndex: 10, LastLogTerm: 2, Size: 5,
		}, &raft.InstallSnapshotResponse{}, rest)
	}()
	i.asked(false)
	snapshot := i.next()
	go func() {
		_ = candidate.RequestPreVote(i.to, Address(i.to), &raft.RequestPreVoteRequest{RPCHeader: header("C"), Term: 4},
			&raft.RequestPreVoteResponse{})
	}()
	// Like Raft's main goroutine, this goroutine takes nothing else before it has read.
	late := time.AfterFunc(10*time.Second, a.CloseStreams)
	_, err := io.Copy(io.Discard, snapshot.Reader)
	if !late.Stop() {
		t.Fatal("Raft reads on")
	}
	snapshot.Respond(nil, err)
	vote := i.next()
	if _, ok := vote.Command.(*raft.RequestPreVoteRequest); !ok {
		t.Errorf("Raft gets %+v", vote.Command)
	}
	vote.Respond(&raft.RequestPreVoteResponse{Granted: true}, nil)
}

// TestASnapshotIsGivenUpOnlyForAnother: its sender shows no life, and somebody else may
// lead.
func TestASnapshotIsGivenUpOnlyForAnother(t *testing.T) {
	beat := &raft.AppendEntriesRequest{RPCHeader: header("B"), Term: 3}
	preVote := &raft.RequestPreVoteRequest{RPCHeader: header("C"), Term: 4}
	for _, tt := range []struct {
		name    string
		size    int64
		waits   any
		life    any // A request, or a part of the snapshot; every 700 ms.
		givenUp bool
	}{
		{"a pre-vote waits", 100, preVote, nil, true},
		{"a vote waits", 100, &raft.RequestVoteRequest{RPCHeader: header("C"), Term: 4}, nil, true},
		{"entries of a newer leader wait", 100, &raft.AppendEntriesRequest{RPCHeader: header("C"), Term: 4}, nil, true},
		{"a newer leader's snapshot waits", 100, &raft.InstallSnapshotRequest{RPCHeader: header("C"), Term: 4}, nil, true},
		{"nothing waits", 100, nil, nil, false},
		{
			"entries of its sender wait", 100,
			&raft.AppendEntriesRequest{RPCHeader: header("B"), Term: 3, PrevLogEntry: 10, PrevLogTerm: 2}, nil, false,
		},
		{"heartbeats arrive", 100, preVote, beat, false},
		{"a slow snapshot arrives", 100, preVote, "s", false},
		{"all of it has arrived, and is restored", 0, preVote, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReading(t, tt.size)
				r.arrives(tt.waits)
				for step := range 5 {
					if step == 1 && r.givenUp() {
						t.Error("it was given up after 700 ms")
					}
					r.arrives(tt.life)
					time.Sleep(700 * time.Millisecond)
				}
				if r.givenUp() != tt.givenUp {
					t.Errorf("given up is %v", r.givenUp())
				}
			})
		})
	}
}

// reading is a node whose Raft reads a snapshot of B in term 3.
type reading struct {
	t      *testing.T
	from   chan raft.RPC
	sender net.Conn
	conns  *conns
}

func newReading(t *testing.T, size int64) reading {
	here, sender := net.Pipe()
	r := reading{t, make(chan raft.RPC), sender, newConns()}
	t.Cleanup(r.conns.shut)
	t.Cleanup(func() { _ = sender.Close() })
	own := &conn{Conn: here, raw: here, peer: idOf("B"), accepted: true}
	r.conns.add(own)
	other, _ := net.Pipe()
	r.conns.add(&conn{Conn: other, raw: other, peer: idOf("C"), accepted: true})
	i := bareInbound(r.from)
	i.s.conns = r.conns
	go i.run(t.Context())
	r.from <- raft.RPC{
		Command:  &raft.InstallSnapshotRequest{RPCHeader: header("B"), Term: 3, LastLogIndex: 10, LastLogTerm: 2, Size: size},
		Reader:   io.LimitReader(own, size),
		RespChan: make(chan raft.RPCResponse, 1),
	}
	question := <-i.toRaft
	question.Respond(&raft.AppendEntriesResponse{Term: 3}, nil)
	snapshot := <-i.toRaft
	go func() { _, _ = io.Copy(io.Discard, snapshot.Reader) }() // Raft answers later, or never.
	return r
}

// arrives lets a request arrive, or a part of the snapshot.
func (r reading) arrives(what any) {
	switch what := what.(type) {
	case nil:
	case string:
		_, err := r.sender.Write([]byte(what))
		must(r.t, err)
	default:
		r.from <- raft.RPC{Command: what, RespChan: make(chan raft.RPCResponse, 1)}
	}
}

// givenUp reports whether the sender's connection is closed; no other connection may be.
func (r reading) givenUp() bool {
	synctest.Wait()
	r.conns.mu.Lock()
	defer r.conns.mu.Unlock()
	peers := map[string]bool{}
	for c := range r.conns.open {
		peers[c.peer] = true
	}
	if !peers[idOf("C")] {
		r.t.Error("another node's connection was closed")
	}
	return !peers[idOf("B")]
}

// TestASnapshotHasMoreTimeThanAMessage: a small one may take long to restore.
func TestASnapshotHasMoreTimeThanAMessage(t *testing.T) {
	t.Parallel()
	b := newBook()
	a, bare := start(t, b, "A", func(c *Config) { c.Timeout = 300 * time.Millisecond }), startBare(t, b, "B")
	i := installing{t, a, raft.ServerID(idOf("B")), bare.Consumer()}
	installed := i.send()
	snapshot := i.next()
	for range 2 { // Each of these is not answered in time.
		done := i.append(&raft.AppendEntriesRequest{RPCHeader: header("A"), Term: 3})
		i.next()
		if <-done {
			t.Fatal("a message without an answer succeeded")
		}
	}
	snapshot.Respond(&raft.InstallSnapshotResponse{Term: 3, Success: true}, nil)
	must(t, <-installed)
}

// TestASnapshotsTimeIsBounded: a node that never answers does not hold the sender.
func TestASnapshotsTimeIsBounded(t *testing.T) {
	b := newBook()
	a, bare := start(t, b, "A", func(c *Config) { c.InstallTimeout = 300 * time.Millisecond }), startBare(t, b, "B")
	i := installing{t, a, raft.ServerID(idOf("B")), bare.Consumer()}
	installed := i.send()
	i.next()
	if err := <-installed; err == nil || !strings.Contains(err.Error(), os.ErrDeadlineExceeded.Error()) {
		t.Errorf("the error is %v", err)
	}
}
