package transport

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// noPort is a port on which nobody calls.
type noPort chan struct{}

func (p noPort) Accept() (net.Conn, error) { <-p; return nil, net.ErrClosed }
func (p noPort) Close() error              { close(p); return nil }
func (p noPort) Addr() net.Addr            { return raftAddr("127.0.0.1:1") }

// TestAnAddressThatNeverAnsweredIsDialledLessOften: any address can be announced. Only members that
// have answered, and voters, are dialled as often as Raft wants.
func TestAnAddressThatNeverAnsweredIsDialledLessOften(t *testing.T) {
	const often = 50 * time.Millisecond
	b, id := Peer{ID: idOf("B"), Tag: "B", Address: "198.51.100.1:7401"}, raft.ServerID(idOf("B"))
	for _, c := range []struct {
		name        string
		peer        func(*Peer)
		meets       func(*Transport)
		least, most int
	}{
		// After 0, 1, 2, 4, 8, 16 and 32 s, and then each 30 s.
		{name: "it joins", least: 25, most: 26},
		{name: "it was removed", peer: func(p *Peer) { p.Removed = true }},
		{name: "it votes", peer: func(p *Peer) { p.Voter = true }, least: 12_000, most: 12_000},
		{name: "it has greeted this node", meets: func(tr *Transport) { tr.stream.nodes.greeted(id) }, least: 12_000, most: 12_000},
		{name: "it has answered this node", meets: func(tr *Transport) { tr.stream.nodes.reached(id) }, least: 12_000, most: 12_000},
		{name: "it has answered elsewhere", meets: func(tr *Transport) {
			tr.stream.nodes.reached(id)
			tr.Disconnect(id)
		}, least: 25, most: 26},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dials, known, peer := 0, newBook(), b
				tr := start(t, known, "A", func(cfg *Config) {
					_ = cfg.Listener.Close()
					cfg.Listener = make(noPort)
					cfg.DialContext = func(context.Context, string) (net.Conn, error) { dials++; return nil, errors.New("no answer") }
				})
				if c.peer != nil {
					c.peer(&peer)
				}
				known.put(peer)
				if c.meets != nil {
					c.meets(tr)
				}
				for begin := time.Now(); time.Since(begin) < 10*time.Minute; time.Sleep(often) {
					if _, err := tr.DialCalls(t.Context(), id); err == nil {
						t.Fatal("a connection to nowhere")
					}
				}
				if dials < c.least || dials > c.most {
					t.Errorf("%d dials in ten minutes, want %d to %d", dials, c.least, c.most)
				}
			})
		})
	}
}
