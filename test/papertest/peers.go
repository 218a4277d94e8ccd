package papertest

import (
	"context"
	"math"
	"net"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/transport"
	"github.com/idnode/idnode/cluster/witness"
)

// grantAll answers as a node that agrees with everything.
func grantAll(request any) any {
	switch r := request.(type) {
	case *raft.RequestVoteRequest:
		return &raft.RequestVoteResponse{RPCHeader: Header("B"), Term: r.Term, Granted: true}
	case *raft.RequestPreVoteRequest:
		return &raft.RequestPreVoteResponse{RPCHeader: Header("B"), Term: r.Term, Granted: true}
	case *raft.AppendEntriesRequest:
		return &raft.AppendEntriesResponse{RPCHeader: Header("B"), Term: r.Term, LastLog: r.PrevLogEntry + uint64(len(r.Entries)), Success: true}
	case *raft.TimeoutNowRequest:
		return &raft.TimeoutNowResponse{}
	}
	return nil
}

// voteOnly grants votes and answers nothing else.
func voteOnly(request any) any {
	if _, ok := request.(*raft.AppendEntriesRequest); ok {
		return nil
	}
	return grantAll(request)
}

// grantLater grants all, but not before A has done what it does after it has sent the
// request.
func grantLater(request any) any {
	time.Sleep(time.Millisecond)
	return grantAll(request)
}

// refuseAfter answers as a node whose log ends with an entry that the leader has too.
func refuseAfter(last uint64) func(request any) any {
	return func(request any) any {
		if r, ok := request.(*raft.AppendEntriesRequest); ok && r.PrevLogEntry > last {
			return &raft.AppendEntriesResponse{Term: r.Term, LastLog: last, NoRetryBackoff: true}
		}
		return grantAll(request)
	}
}

// Peer is another node: what it got, and how it answers.
type Peer struct {
	*transport.Transport
	mu       sync.Mutex
	requests []any
	reply    func(request any) any
	stopped  chan struct{}
	done     chan struct{}
}

func newPeer(t *transport.Transport) *Peer {
	p := &Peer{Transport: t, stopped: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

func (p *Peer) run() {
	defer close(p.done)
	for {
		select {
		case rpc := <-p.Consumer():
			if reply := p.got(rpc.Command); reply != nil {
				rpc.Respond(reply, nil)
			}
		case <-p.stopped:
			return
		}
	}
}

func (p *Peer) got(request any) any {
	p.mu.Lock()
	p.requests = append(p.requests, request)
	reply := p.reply
	p.mu.Unlock()
	if reply == nil {
		return nil
	}
	return reply(request)
}

// answer sets how requests are answered; nil means not at all.
func (p *Peer) answer(reply func(request any) any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reply = reply
}

func (p *Peer) Stop() {
	close(p.stopped)
	<-p.done
	_ = p.Close()
}

// knownDisk is a witness of disks that have all there is.
type knownDisk struct {
	*witness.Witness
	begun time.Time
}

func (k knownDisk) Own() witness.DiskState {
	return witness.DiskState{Starts: 1, Last: math.MaxUint64, Term: math.MaxUint64, Trusted: true, Age: time.Since(k.begun)}
}

// Received returns the requests of a kind that a node has got, and forgets all.
func Received[T any](p *Node, tag string) (out []T) {
	synctest.Wait()
	peer := p.Others[tag]
	peer.mu.Lock()
	defer peer.mu.Unlock()
	for _, r := range peer.requests {
		if r, ok := r.(T); ok {
			out = append(out, r)
		}
	}
	peer.requests = nil
	return out
}

// directory knows the nodes A to E, each at the address that is its tag.
type directory struct{}

func (directory) Lookup(id string) (transport.Peer, bool) {
	tag := strings.ToUpper(id[len(id)-1:])
	return transport.Peer{ID: id, Tag: tag, Address: tag}, true
}

// network connects nodes within the process, by tag.
type network map[string]*listener

func (n network) Listen(tag string) net.Listener {
	n[tag] = &listener{tag: tag, Conns: make(chan net.Conn), Done: make(chan struct{})}
	return n[tag]
}

func (n network) dial(ctx context.Context, address string) (net.Conn, error) {
	near, far := net.Pipe()
	l := n[address]
	select {
	case l.Conns <- far:
		return near, nil
	case <-l.Done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type listener struct {
	tag   string
	Conns chan net.Conn
	once  sync.Once
	Done  chan struct{}
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.Conns:
		return c, nil
	case <-l.Done:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.Done) })
	return nil
}

func (l *listener) Addr() net.Addr { return address(l.tag) }

type address string

func (address) Network() string  { return "paper" }
func (a address) String() string { return string(a) }
