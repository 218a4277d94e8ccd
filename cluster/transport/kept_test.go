package transport

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/witness"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/test/compat"
)

// TestFramesKept: the bytes on the Raft port, of the handshake and of the library's messages and answers. What
// members say besides is in the file members.
func TestFramesKept(t *testing.T) {
	disk := witness.DiskState{Trusted: true, Starts: 2, Last: 3, LastTerm: 4, Term: 5, Committed: 6, Age: 7}
	var lines []string
	for name, why := range map[string]purpose{"raft": forRaft, "probe": forProbe, "acceptance": forAcceptance, "calls": forCalls} {
		lines = append(lines, fmt.Sprintf("greeting for %s: %x", name, encode(greeting{
			Purpose: why, Cluster: clusterID{1}, Dialler: nodeid.ID{2}, Target: nodeid.ID{3}, Process: 8, Disk: disk,
		})))
	}
	for name, status := range map[string]Status{
		"ok": OK, "wrong cluster": WrongCluster, "wrong target": WrongTarget, "not member": NotMember, "removed": Removed,
		"wrong certificate": WrongCertificate, "impostor": Impostor, "set back": SetBack, "other version": OtherVersion,
	} {
		lines = append(lines, fmt.Sprintf("answer %s: %x", name, encode(greetingReply{Status: status, ID: nodeid.ID{4}, Process: 9, Disk: disk})))
	}
	compat.Names(t, compat.Nodes, "frames", append(lines, libraryFrames(t)...))
}

// libraryFrames are the bytes of each of the library's messages and of the answers, with every field set.
func libraryFrames(t *testing.T) (lines []string) {
	a, b := &pipes{accepted: make(chan net.Conn)}, &pipes{accepted: make(chan net.Conn)}
	a.to = b
	from, at := newNetwork(discard, a, 1, time.Minute), newNetwork(discard, b, 1, time.Minute)
	var work sync.WaitGroup
	ended := make(chan struct{})
	header := raft.RPCHeader{ProtocolVersion: 3, ID: []byte("id"), Addr: []byte("address")}
	work.Go(func() {
		for {
			select {
			case rpc := <-at.Consumer():
				if rpc.Reader != nil {
					_, _ = io.Copy(io.Discard, rpc.Reader)
				}
				rpc.Respond(map[string]any{
					"*raft.AppendEntriesRequest": &raft.AppendEntriesResponse{
						RPCHeader: header, Term: 1, LastLog: 2, Success: true, NoRetryBackoff: true,
					},
					"*raft.RequestVoteRequest":     &raft.RequestVoteResponse{RPCHeader: header, Term: 1, Peers: []byte("peers"), Granted: true},
					"*raft.RequestPreVoteRequest":  &raft.RequestPreVoteResponse{RPCHeader: header, Term: 1, Granted: true},
					"*raft.TimeoutNowRequest":      &raft.TimeoutNowResponse{RPCHeader: header},
					"*raft.InstallSnapshotRequest": &raft.InstallSnapshotResponse{RPCHeader: header, Term: 1, Success: true},
				}[fmt.Sprintf("%T", rpc.Command)], nil)
			case <-ended:
				return
			}
		}
	})
	entry := &raft.Log{
		Index: 1, Term: 2, Type: raft.LogConfiguration, Data: []byte("data"), Extensions: []byte("more"),
		AppendedAt: time.Unix(1_800_000_000, 5).UTC(),
	}
	for name, send := range map[string]func() error{
		"append": func() error {
			return from.AppendEntries("b", "b", &raft.AppendEntriesRequest{
				RPCHeader: header, Term: 1, PrevLogEntry: 2, PrevLogTerm: 3, Entries: []*raft.Log{entry}, LeaderCommitIndex: 4,
				//lint:ignore SA1019 the library writes it
				Leader: []byte("leader"),
			}, &raft.AppendEntriesResponse{})
		},
		"vote": func() error {
			return from.RequestVote("b", "b", &raft.RequestVoteRequest{
				RPCHeader: header, Term: 1, LastLogIndex: 2, LastLogTerm: 3, LeadershipTransfer: true,
				//lint:ignore SA1019 the library writes it
				Candidate: []byte("candidate"),
			}, &raft.RequestVoteResponse{})
		},
		"pre-vote": func() error {
			return from.RequestPreVote("b", "b", &raft.RequestPreVoteRequest{RPCHeader: header, Term: 1, LastLogIndex: 2, LastLogTerm: 3},
				&raft.RequestPreVoteResponse{})
		},
		"timeout": func() error {
			return from.TimeoutNow("b", "b", &raft.TimeoutNowRequest{RPCHeader: header}, &raft.TimeoutNowResponse{})
		},
		"snapshot": func() error {
			return from.InstallSnapshot("b", "b", &raft.InstallSnapshotRequest{
				RPCHeader: header, SnapshotVersion: 1, Term: 2, Leader: []byte("leader"), LastLogIndex: 3, LastLogTerm: 4, Peers: []byte("peers"),
				Configuration: []byte("configuration"), ConfigurationIndex: 5, Size: 8,
			}, &raft.InstallSnapshotResponse{}, strings.NewReader("snapshot"))
		},
	} {
		must(t, send())
		lines = append(lines, fmt.Sprintf("%s: %x", name, a.taken()), fmt.Sprintf("answer to %s: %x", name, b.taken()))
	}
	close(ended)
	work.Wait()
	from.CloseStreams()
	must(t, from.Close())
	must(t, at.Close())
	return lines
}

// pipes is one end of connections in memory, of which it has the bytes that it sent.
type pipes struct {
	to       *pipes
	accepted chan net.Conn
	mu       sync.Mutex
	sent     bytes.Buffer
	closing  sync.Once
}

func (p *pipes) Dial(raft.ServerAddress, time.Duration) (net.Conn, error) {
	near, far := net.Pipe()
	p.to.accepted <- noted{far, p.to}
	return noted{near, p}, nil
}

func (p *pipes) Accept() (net.Conn, error) {
	if conn, open := <-p.accepted; open {
		return conn, nil
	}
	return nil, net.ErrClosed
}

func (p *pipes) Close() error {
	p.closing.Do(func() { close(p.accepted) })
	return nil
}

func (p *pipes) Addr() net.Addr { return raftAddr("pipes") }

func (p *pipes) taken() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.sent.Reset()
	return bytes.Clone(p.sent.Bytes())
}

type noted struct {
	net.Conn
	by *pipes
}

// Write implements net.Conn.
func (n noted) Write(b []byte) (int, error) {
	n.by.mu.Lock()
	n.by.sent.Write(b)
	n.by.mu.Unlock()
	return n.Conn.Write(b)
}
