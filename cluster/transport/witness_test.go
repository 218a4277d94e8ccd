package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/witness"
)

// disk is a Witness whose own disk a test sets back.
type disk struct {
	*witness.Witness
	mu  sync.Mutex
	own witness.Progress
}

func (d *disk) Own() witness.Progress {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.own
}

func newDisk(own witness.Progress) *disk { return &disk{Witness: witness.New(nil), own: own} }

// TestASetBackNodeIsRefusedBothWays: as a dialler it is told, and as a node that is
// dialled its connection is not used.
func TestASetBackNodeIsRefusedBothWays(t *testing.T) {
	b := newBook()
	before, after := witness.Progress{Starts: 1, Last: 9, Term: 3, Committed: 9}, witness.Progress{Starts: 2, Last: 8, Term: 3}
	a := start(t, b, "A", func(c *Config) { c.Witness = newDisk(before) })
	first := start(t, b, "B", func(c *Config) { c.Witness = newDisk(before) })
	if err := first.Greet(t.Context(), raft.ServerID(idOf("A"))); err != nil || !first.Greeted(raft.ServerID(idOf("A"))) {
		t.Fatal("the first process was refused:", err)
	}
	_ = first.Close()
	var told Status
	second := start(t, b, "B", func(c *Config) {
		c.Witness, c.OnRefused = newDisk(after), func(_ Peer, s Status) { told = s }
	})
	var refused *RefusedError
	err := second.Greet(t.Context(), raft.ServerID(idOf("A")))
	if !errors.As(err, &refused) || refused.Status != SetBack || told != SetBack || second.Greeted(raft.ServerID(idOf("A"))) {
		t.Errorf("it greets with less than it had: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := a.stream.dial(ctx, idOf("B")); err == nil {
		t.Error("it is dialled, and answers with less than it had")
	}
	after.Trusted = true
	_ = second.Close()
	third := start(t, b, "B", func(c *Config) { c.Witness = newDisk(after) })
	if err := third.Greet(t.Context(), raft.ServerID(idOf("A"))); err != nil {
		t.Error("an operator vouches for it:", err)
	}
}

// TestAnOlderProgramIsDialledAsItKnows: it closes a connection that opens with the
// second version of the handshake. Where no member runs one, nobody is dialled so, or
// accepted.
func TestAnOlderProgramIsDialledAsItKnows(t *testing.T) {
	b := newBook()
	port := listen(t)
	t.Cleanup(func() { _ = port.Close() })
	b.put(Peer{ID: idOf("B"), Tag: "B", Address: port.Addr().String()})
	go serveOlder(t, port)
	again := listen(t)
	t.Cleanup(func() { _ = again.Close() })
	go serveOlder(t, again)
	older := true
	a := start(t, b, "A", func(c *Config) {
		c.Witness, c.OlderPeers = newDisk(witness.Progress{Starts: 1}), func() bool { return older }
	})
	for range 2 {
		if err := a.Greet(t.Context(), raft.ServerID(idOf("B"))); err != nil {
			t.Error("an older program is not reached:", err)
		}
	}
	// An older program dials.
	dials := start(t, b, "C", nil)
	if err := dials.Greet(t.Context(), raft.ServerID(idOf("A"))); err != nil {
		t.Error("an older program is refused:", err)
	}
	// The node is started with a program that accepts no older one any more.
	_ = port.Close()
	start(t, b, "B", func(c *Config) {
		c.Witness, c.OlderPeers = newDisk(witness.Progress{Starts: 1}), func() bool { return false }
	})
	if err := a.Greet(t.Context(), raft.ServerID(idOf("B"))); err != nil {
		t.Error("a node that knows the second version by now is not reached:", err)
	}
	older = false
	if err := dials.Greet(t.Context(), raft.ServerID(idOf("A"))); err == nil {
		t.Error("a node that does not tell its progress is accepted where all do")
	}
	b.put(Peer{ID: idOf("B"), Tag: "B", Address: again.Addr().String()})
	if err := a.Greet(t.Context(), raft.ServerID(idOf("B"))); err == nil {
		t.Error("a node is dialled without progress where all tell it")
	}
}

// closesFirst is a port behind which nothing is ready when it is dialled first.
type closesFirst struct {
	net.Listener
	once *sync.Once
}

// Accept implements net.Listener.
func (l closesFirst) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.once.Do(func() {
			_ = conn.Close()
			conn, err = l.Listener.Accept()
		})
	}
	return conn, err
}

// TestANodeThatIsNotReadyIsNoOlderProgram: it closes the first greeting as an older
// program does, and compares the next one.
func TestANodeThatIsNotReadyIsNoOlderProgram(t *testing.T) {
	for name, greet := range map[string]func(*Transport) error{
		"greeting": func(a *Transport) error { return a.Greet(t.Context(), raft.ServerID(idOf("B"))) },
		"dialling": func(a *Transport) error {
			conn, err := a.stream.dial(t.Context(), idOf("B"))
			if err == nil {
				_ = conn.Close()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook()
			seen := newDisk(witness.Progress{Starts: 1})
			start(t, b, "B", func(c *Config) { c.Witness, c.Listener = seen, closesFirst{c.Listener, &sync.Once{}} })
			a := start(t, b, "A", func(c *Config) { c.Witness = newDisk(witness.Progress{Starts: 7}) })
			if err := greet(a); err != nil {
				t.Fatal(err)
			}
			if a.stream.older.is(mustID(t, idOf("B"))) {
				t.Error("it is taken for an older program")
			}
			if known, _ := seen.Known(); known[idOf("A")].Starts != 7 {
				t.Errorf("it has not compared the disk of who greeted: %+v", known)
			}
		})
	}
}

// serveOlder answers greetings as a program from before the second version.
func serveOlder(t *testing.T, port net.Listener) {
	for {
		conn, err := port.Accept()
		if err != nil {
			return
		}
		b := make([]byte, len(magic))
		if _, err := io.ReadFull(conn, b); err == nil && string(b) == magic {
			if _, err := io.ReadFull(conn, make([]byte, greetingBytes-len(magic))); err == nil {
				_, _ = conn.Write(answer{status: OK, id: mustID(t, idOf("B")), instance: newInstance()}.encode())
			}
		}
		_ = conn.Close()
	}
}

// TestNoVoteBeforeAMajorityHasAcceptedTheProcess: of five voters two others must have,
// and who asks for the vote is one of them.
func TestNoVoteBeforeAMajorityHasAcceptedTheProcess(t *testing.T) {
	b := newBook()
	a := start(t, b, "A", nil)
	start(t, b, "C", nil)
	var voters []raft.ServerID
	for _, tag := range []string{"A", "B", "C", "D", "E"} {
		voters = append(voters, raft.ServerID(idOf(tag)))
	}
	started := start(t, b, "B", func(c *Config) { c.Voters = func() []raft.ServerID { return voters } })
	started.StopWaiting() // D and E had their time.
	go func() {
		for rpc := range started.Consumer() {
			switch rpc.Command.(type) {
			case *raft.RequestVoteRequest:
				rpc.Respond(&raft.RequestVoteResponse{Granted: true}, nil)
			case *raft.RequestPreVoteRequest:
				rpc.Respond(&raft.RequestPreVoteResponse{Granted: true}, nil)
			case nil:
				return
			default:
				rpc.Respond(&raft.TimeoutNowResponse{}, nil)
			}
		}
	}()
	t.Cleanup(func() { close(started.inbound.toRaft) })
	target, header := raft.ServerID(idOf("B")), raft.RPCHeader{ProtocolVersion: 3, ID: []byte(idOf("A")), Addr: []byte(idOf("A"))}
	asked := func() (votes int) {
		if err := a.RequestVote(target, Address(target), &raft.RequestVoteRequest{RPCHeader: header}, &raft.RequestVoteResponse{}); err == nil {
			votes++
		}
		if err := a.RequestPreVote(target, Address(target), &raft.RequestPreVoteRequest{RPCHeader: header}, &raft.RequestPreVoteResponse{}); err == nil {
			votes++
		}
		if err := a.TimeoutNow(target, Address(target), &raft.TimeoutNowRequest{RPCHeader: header}, &raft.TimeoutNowResponse{}); err == nil {
			votes++
		}
		return votes
	}
	if n := asked(); n != 0 {
		t.Errorf("%d of 3 requests reached Raft before a majority had accepted the process", n)
	}
	if err := started.Greet(t.Context(), raft.ServerID(idOf("C"))); err != nil {
		t.Fatal(err)
	}
	if n := asked(); n != 3 {
		t.Errorf("%d of 3 requests reached Raft when a majority had accepted the process", n)
	}
}
