package cluster

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/transport"
)

// grantAll answers as a node that agrees with everything.
func grantAll(request any) any {
	switch r := request.(type) {
	case *raft.RequestVoteRequest:
		return &raft.RequestVoteResponse{RPCHeader: paperHeader("B"), Term: r.Term, Granted: true}
	case *raft.RequestPreVoteRequest:
		return &raft.RequestPreVoteResponse{RPCHeader: paperHeader("B"), Term: r.Term, Granted: true}
	case *raft.AppendEntriesRequest:
		return &raft.AppendEntriesResponse{RPCHeader: paperHeader("B"), Term: r.Term, LastLog: r.PrevLogEntry + uint64(len(r.Entries)), Success: true}
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

// paperPeer is another node: what it got, and how it answers.
type paperPeer struct {
	*transport.Transport
	mu       sync.Mutex
	requests []any
	reply    func(request any) any
	stopped  chan struct{}
	done     chan struct{}
}

func newPaperPeer(t *transport.Transport) *paperPeer {
	p := &paperPeer{Transport: t, stopped: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

func (p *paperPeer) run() {
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

func (p *paperPeer) got(request any) any {
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
func (p *paperPeer) answer(reply func(request any) any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reply = reply
}

func (p *paperPeer) close() {
	close(p.stopped)
	<-p.done
	_ = p.Close()
}

// received returns the requests of a kind that a node has got, and forgets all.
func received[T any](p *paper, tag string) (out []T) {
	synctest.Wait()
	peer := p.others[tag]
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

// paperDirectory knows the nodes A to E, each at the address that is its tag.
type paperDirectory struct{}

func (paperDirectory) Lookup(id string) (transport.Peer, bool) {
	tag := strings.ToUpper(id[len(id)-1:])
	return transport.Peer{ID: id, Tag: tag, Address: tag}, true
}

// paperNetwork connects nodes within the process, by tag.
type paperNetwork map[string]*paperListener

func (n paperNetwork) listen(tag string) net.Listener {
	n[tag] = &paperListener{tag: tag, conns: make(chan net.Conn), done: make(chan struct{})}
	return n[tag]
}

func (n paperNetwork) dial(ctx context.Context, address string) (net.Conn, error) {
	near, far := net.Pipe()
	l := n[address]
	select {
	case l.conns <- far:
		return near, nil
	case <-l.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

type paperListener struct {
	tag   string
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *paperListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *paperListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

func (l *paperListener) Addr() net.Addr { return paperAddr(l.tag) }

type paperAddr string

func (paperAddr) Network() string  { return "paper" }
func (a paperAddr) String() string { return string(a) }
