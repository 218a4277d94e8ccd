package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// slowLinks are a network in virtual time. Bytes from the dialling side arrive at a rate.
type slowLinks struct {
	t  *testing.T
	at map[string]*slowListener
	// rate is in bytes a second.
	rate int
	// buffer is how many pieces are on their way at a time.
	buffer int
	// stops, if set, is after how many bytes nothing more arrives on a connection.
	stops int
}

// slowListener is a node's port.
type slowListener struct {
	address string
	arrived chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (n *slowLinks) listen(address string) *slowListener {
	l := &slowListener{address: address, arrived: make(chan net.Conn), closed: make(chan struct{})}
	n.at[address] = l
	return l
}

func (l *slowListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.arrived:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *slowListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *slowListener) Addr() net.Addr { return raftAddr(l.address) }

func (n *slowLinks) dial(ctx context.Context, address string) (net.Conn, error) {
	near, nearer := net.Pipe()
	farther, far := net.Pipe()
	go n.carry(farther, nearer)
	go func() {
		_, _ = io.Copy(nearer, farther)
		_ = nearer.Close()
	}()
	select {
	case n.at[address].arrived <- far:
		return near, nil
	case <-ctx.Done():
		_, _ = near.Close(), far.Close()
		return nil, ctx.Err()
	}
}

// carry copies bytes to the other side at the rate.
func (n *slowLinks) carry(to, from net.Conn) {
	queue := make(chan []byte, n.buffer)
	go func() {
		defer close(queue)
		for {
			b := make([]byte, 16<<10)
			k, err := from.Read(b)
			if err != nil {
				return
			}
			queue <- b[:k]
		}
	}()
	carried := 0
	for b := range queue {
		if carried += len(b); n.stops > 0 && carried > n.stops {
			<-n.t.Context().Done()
		}
		if n.t.Context().Err() == nil {
			time.Sleep(time.Duration(len(b)) * time.Second / time.Duration(n.rate))
		}
		if _, err := to.Write(b); err != nil {
			_ = from.Close()
		}
	}
	_ = to.Close()
}

// receiver is a node's Raft that reads snapshots, and restores each for a while.
type receiver struct {
	from     <-chan raft.RPC
	restores time.Duration
	begun    atomic.Int64
}

func (r *receiver) run(ctx context.Context) {
	for {
		select {
		case rpc := <-r.from:
			r.answer(rpc)
		case <-ctx.Done():
			return
		}
	}
}

func (r *receiver) answer(rpc raft.RPC) {
	request, ok := rpc.Command.(*raft.InstallSnapshotRequest)
	if !ok {
		a := rpc.Command.(*raft.AppendEntriesRequest)
		rpc.Respond(&raft.AppendEntriesResponse{Term: a.Term, Success: a.PrevLogEntry == 0}, nil)
		return
	}
	r.begun.Add(1)
	n, err := io.Copy(io.Discard, rpc.Reader)
	if err == nil && n < request.Size {
		err = io.ErrUnexpectedEOF
	}
	time.Sleep(r.restores)
	rpc.Respond(&raft.InstallSnapshotResponse{Term: request.Term, Success: err == nil}, err)
}

// TestASnapshotTakesAsLongAsItMoves: over a slow link, with or without much that is on its
// way at a time, and while it is restored. It is given up soon after nothing moves any more,
// although its receiver answers heartbeats.
func TestASnapshotTakesAsLongAsItMoves(t *testing.T) {
	const size, slow, quick = 6 << 20, 50_000, 1 << 30
	for _, tt := range []struct {
		name           string
		rate           int
		buffer, stops  int
		restores       time.Duration
		arrives        bool
		atLeast, after time.Duration
	}{
		{name: "a slow link", rate: slow, arrives: true, atLeast: 2 * time.Minute, after: 3 * time.Minute},
		{
			name: "a slow link that buffers everything", rate: slow, buffer: size >> 14, arrives: true, atLeast: 2 * time.Minute,
			after: 3 * time.Minute,
		},
		{name: "a slow restore", rate: quick, restores: 5 * time.Minute, arrives: true, atLeast: 5 * time.Minute, after: 6 * time.Minute},
		{name: "a link that stops", rate: slow, stops: size / 2, atLeast: time.Minute, after: time.Minute + 2*DefaultInstallTimeout},
		{
			name: "a link that buffers everything and stops", rate: slow, buffer: size >> 14, stops: size / 2, atLeast: time.Minute,
			after: time.Minute + 2*DefaultInstallTimeout,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				links := &slowLinks{t: t, at: map[string]*slowListener{}, rate: tt.rate, buffer: tt.buffer, stops: tt.stops}
				book := newBook()
				leader, follower := links.node(book, "B"), links.node(book, "A")
				r := &receiver{from: follower.Consumer(), restores: tt.restores}
				go r.run(t.Context())
				go heartbeats(t.Context(), leader)
				begin := time.Now()
				err := sendSnapshot(leader, size)
				took := time.Since(begin)
				if arrived := err == nil; arrived != tt.arrives || took < tt.atLeast || took > tt.after {
					t.Errorf("the snapshot arrived: %v after %v (%v), want %v after %v to %v", arrived, took, err, tt.arrives, tt.atLeast, tt.after)
				}
				if !tt.arrives && !strings.Contains(err.Error(), os.ErrDeadlineExceeded.Error()) {
					t.Errorf("the error is %v", err)
				}
				if n := r.begun.Load(); n != 1 {
					t.Errorf("the follower began %d snapshots", n)
				}
			})
		})
	}
}

// TestAFormerLeaderSendsNoSnapshot: its receiver gives no vote while it reads.
func TestAFormerLeaderSendsNoSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := &slowLinks{t: t, at: map[string]*slowListener{}, rate: 50_000}
		book := newBook()
		leader, follower := links.node(book, "B"), links.node(book, "A")
		go (&receiver{from: follower.Consumer()}).run(t.Context())
		time.AfterFunc(10*time.Second, leader.StopSnapshots)
		begin := time.Now()
		if err := sendSnapshot(leader, 6<<20); err == nil || time.Since(begin) > 11*time.Second {
			t.Errorf("the snapshot ended after %v: %v", time.Since(begin), err)
		}
	})
}

// node starts a node's transport.
func (n *slowLinks) node(b *book, tag string) *Transport {
	b.put(Peer{ID: idOf(tag), Tag: tag, Address: tag})
	cfg := configOf(b, tag, n.listen(tag))
	cfg.DialContext = n.dial
	tr := New(cfg)
	n.t.Cleanup(func() {
		_ = tr.Close()
		time.Sleep(2 * DefaultInstallTimeout) // Until the library and the links have ended too.
	})
	return tr
}

// heartbeats sends node A those of B, as a leader does, until ctx ends.
func heartbeats(ctx context.Context, from *Transport) {
	for ctx.Err() == nil {
		_ = from.AppendEntries(raft.ServerID(idOf("A")), "", &raft.AppendEntriesRequest{RPCHeader: header("B"), Term: 3},
			&raft.AppendEntriesResponse{})
		time.Sleep(100 * time.Millisecond)
	}
}

// sendSnapshot sends node A a snapshot of B, and returns when it is installed.
func sendSnapshot(from *Transport, size int64) error {
	var resp raft.InstallSnapshotResponse
	err := from.InstallSnapshot(raft.ServerID(idOf("A")), "", &raft.InstallSnapshotRequest{
		RPCHeader: header("B"), SnapshotVersion: raft.SnapshotVersionMax, Term: 3, LastLogIndex: 10, LastLogTerm: 2, Size: size,
	}, &resp, strings.NewReader(strings.Repeat("s", int(size))))
	if err == nil && !resp.Success {
		err = errors.New("the snapshot was rejected")
	}
	return err
}
