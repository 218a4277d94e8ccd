package transport

import (
	"bytes"
	"io"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// installTick is how often the sender of the snapshot that Raft reads is checked, and
	// silentLooks the number of consecutive checks without a sign of it after which Raft may
	// stop reading: 1 s. Checks are counted, not time, so that a pause of this process is
	// one check.
	installTick = 200 * time.Millisecond
	silentLooks = 5
)

// install is a snapshot that a leader sends, from its arrival to the answer.
//
// While Raft's main goroutine reads and restores a snapshot, it answers nothing else. So
// the leader's empty heartbeats are answered here: a leader that needs this node for a
// quorum would lose its lease.
//
// Before Raft gets the snapshot, inbound asks it with an empty append whether its log, or its
// newest snapshot, has the snapshot's last entry. There are two reasons. The Raft paper says (figure 13, receiver
// implementation, 6): "If existing log entry has same index and term as snapshot's last
// included entry, retain log entries following it and reply". The library (v1.7.3) installs
// such a snapshot, which a retry may have made old: its state goes back, and so does its
// configuration, although the log has a newer one. And Raft's answer has the leader's term,
// so that term is on this node's disk before a heartbeat is answered. inbound knows whether
// Raft may have entered a newer term since.
//
// Raft does not vote while it reads, and reads as long as the connection lasts. A sender
// that is paused or gone would delay the election of another leader that needs this node's
// vote.
type install struct {
	// rpc is the request as it arrived.
	rpc     raft.RPC
	request *raft.InstallSnapshotRequest
	// answers receives Raft's answers to the question and to the snapshot, in this order.
	answers chan raft.RPCResponse
	// log is Raft's answer to the question; nil before it.
	log *raft.AppendEntriesResponse
	// running means that Raft has taken the snapshot.
	running bool
	// looks ticks while running is set.
	looks *time.Ticker
	// read is the number of bytes that Raft has read, seen the number at the last check, and
	// silent the number of consecutive checks without a sign of the sender.
	read   atomic.Int64
	seen   int64
	silent int
	// still is the number of consecutive checks in which Raft had read nothing more.
	still int
}

func newInstall(rpc raft.RPC, request *raft.InstallSnapshotRequest) *install {
	return &install{rpc: rpc, request: request, answers: make(chan raft.RPCResponse, 1)}
}

// question asks Raft whether its log has the snapshot's last entry.
func (s *install) question() *raft.AppendEntriesRequest {
	return &raft.AppendEntriesRequest{
		RPCHeader: s.request.RPCHeader, Term: s.request.Term,
		PrevLogEntry: s.request.LastLogIndex, PrevLogTerm: s.request.LastLogTerm,
	}
}

func (s *install) snapshot() raft.RPC {
	return raft.RPC{Command: s.request, Reader: counting{s.rpc.Reader, &s.read}, RespChan: s.answers}
}

type counting struct {
	io.Reader
	n *atomic.Int64
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

func (s *install) start() { s.running, s.looks = true, time.NewTicker(installTick) }

func (s *install) stop() {
	if s.looks != nil {
		s.looks.Stop()
	}
}

// ticks returns the ticks of the sender's checks; nil while Raft has no snapshot.
func (s *install) ticks() <-chan time.Time {
	if s == nil || s.looks == nil {
		return nil
	}
	return s.looks.C
}

// look checks for a sign of the sender, and reports whether there was none for silentLooks
// checks. No sign is needed once Raft has read everything and only restores.
func (s *install) look() (gone bool) {
	read := s.read.Load()
	s.silent++
	s.still++
	if read != s.seen || read >= s.request.Size {
		s.seen, s.silent, s.still = read, 0, 0
	}
	return s.silent >= silentLooks
}

// pending returns the channel of Raft's answers; nil without an install.
func (s *install) pending() <-chan raft.RPCResponse {
	if s == nil {
		return nil
	}
	return s.answers
}

// beats reports whether a heartbeat is from the leader whose snapshot Raft is installing, in
// Raft's term during the install.
func (s *install) beats(r *raft.AppendEntriesRequest) bool {
	return s != nil && s.running && len(s.answers) == 0 &&
		s.log.Term == r.Term && s.request.Term == r.Term &&
		bytes.Equal(s.request.ID, r.ID) && bytes.Equal(s.request.Addr, r.Addr)
}

// beat answers a heartbeat in Raft's place. The heartbeat is a sign of the sender. The answer
// tells the sender whether the snapshot progresses, in a field that the library reads in
// refusals only.
func (s *install) beat(rpc raft.RPC) {
	s.silent = 0
	rpc.Respond(&raft.AppendEntriesResponse{
		RPCHeader: s.log.RPCHeader, Term: s.log.Term, LastLog: s.log.LastLog, Success: true, NoRetryBackoff: s.still < silentLooks,
	}, nil)
}

// moves reports whether an answer to a heartbeat says that the sender's snapshot progresses.
func moves(r *raft.AppendEntriesResponse) bool { return r.Success && r.NoRetryBackoff }

// needless reads and answers a snapshot whose last entry Raft's log has. The sender reads
// the answer only after it has sent everything.
func (s *install) needless() {
	_, _ = io.Copy(io.Discard, s.rpc.Reader) // After a failure the answer fails as well.
	s.rpc.Respond(&raft.InstallSnapshotResponse{Term: s.log.Term, Success: true}, nil)
}
