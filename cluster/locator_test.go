package cluster_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/internal/freeport"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestAllMembersMove: all nodes come back at other addresses at once, with lists that are
// right. Only the lists can tell them where the others are.
func TestAllMembersMove(t *testing.T) {
	t.Parallel()
	for name, move := range map[string]func(t *testing.T, n *network){
		"to new addresses": func(t *testing.T, n *network) {
			for _, s := range n.servers {
				s.grpc, s.raft = freeport.For(t), freeport.For(t)
			}
		},
		"to each other's": func(_ *testing.T, n *network) {
			a, b, c := n.servers[0], n.servers[1], n.servers[2]
			a.grpc, b.grpc, c.grpc = b.grpc, c.grpc, a.grpc
			a.raft, b.raft, c.raft = b.raft, c.raft, a.raft
		},
		"their Raft ports alone": func(t *testing.T, n *network) {
			for _, s := range n.servers {
				s.raft = freeport.For(t)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNetwork(t, 3)
			last, _ := n.servers[0].eventuallyNext("users")
			n.stopAll()
			move(t, n)
			for _, s := range n.servers {
				n.peers[s.tag] = s.grpc
			}
			n.run(n.servers...)
			n.leader()
			if v, failed := n.servers[0].eventuallyNext("users"); v <= last || v > last+1+failed {
				t.Errorf("%d came after %d", v, last)
			}
			// Announced, the addresses need no list.
			for _, s := range n.servers {
				eventually(t, s.tag+" to know where all members are", func() bool {
					return !slices.ContainsFunc(s.state.Members(), func(m *raftlogv1.Member) bool {
						at := n.server(m.GetTag())
						return m.GetGrpcAddress() != at.grpc || m.GetRaftAddress() != at.raft
					})
				})
			}
			n.agree()
		})
	}
}

// TestALaterNodeAmongThoseThatMove: a node that joined has addresses to join through
// instead of a list of peers.
func TestALaterNodeAmongThoseThatMove(t *testing.T) {
	t.Parallel()
	n := startNetwork(t, 2)
	c := newServer(t, "C")
	join := func(cfg *cluster.Config) { cfg.Join = slices.Collect(maps.Values(n.peers)) }
	c.open(join)
	n.servers = append(n.servers, c)
	c.start()
	c.eventuallyNext("users")
	eventually(t, "C to vote", func() bool { return votes(n.servers[0], "C") })
	n.stopAll()
	for _, s := range n.servers {
		s.grpc, s.raft = freeport.For(t), freeport.For(t)
	}
	n.peers["A"], n.peers["B"] = n.servers[0].grpc, n.servers[1].grpc
	for _, s := range n.servers[:2] {
		s.open(func(cfg *cluster.Config) { cfg.PeerList = n.peers })
	}
	c.open(join)
	startAll(n.servers...)
	c.eventuallyNext("users")
}

// TestWhoIsLookedForWhere: a node that finds nobody says whom it looks for, where, and who
// answers there.
func TestWhoIsLookedForWhere(t *testing.T) {
	t.Parallel()
	n, stranger := startNetwork(t, 3), startNetwork(t, 1)
	a, b, c := n.servers[0], n.servers[1], n.servers[2]
	n.stopAll()
	elsewhere := freeport.For(t)
	a.open(func(cfg *cluster.Config) {
		cfg.PeerList = map[string]string{"A": a.grpc, "B": elsewhere, "C": stranger.servers[0].grpc}
	})
	a.start()
	warned := func(texts ...string) func() bool {
		return func() bool {
			return slices.ContainsFunc(problems(a), func(w string) bool {
				return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(w, text) })
			})
		}
	}
	eventually(t, "a warning about B",
		warned("B at "+b.grpc+", as registered (", ", nor at "+elsewhere+", on the list (connection refused)"))
	eventually(t, "a warning about C",
		warned("C at "+c.grpc+", as registered (", stranger.servers[0].grpc+", on the list (a node of cluster "))
	b.open(func(cfg *cluster.Config) { cfg.PeerList = n.peers })
	b.start()
	n.servers = []*server{a, b}
	n.leader()
	eventually(t, "no warning", func() bool {
		return !slices.ContainsFunc(problems(a), func(w string) bool { return strings.HasPrefix(w, "B ") })
	})
}

// problems are those that a node has with members: the tag, where it does not answer, and why.
func problems(s *server) (all []string) {
	for _, m := range s.node.Status().Members {
		if m.Problem != "" {
			all = append(all, m.Member.GetTag()+" "+m.Problem)
		}
	}
	return all
}

// firewall is a network on which some addresses are closed to those who dial.
type firewall struct {
	wrappedTCP
	closed []string
}

func (f firewall) DialContext(ctx context.Context, address string) (net.Conn, error) {
	if slices.Contains(f.closed, address) {
		return nil, errors.New("i/o timeout")
	}
	return f.wrappedTCP.DialContext(ctx, address)
}

// TestAClosedRaftPortIsNamed: at the first start the gRPC ports are open, and the others' Raft
// ports are not.
func TestAClosedRaftPortIsNamed(t *testing.T) {
	t.Parallel()
	n := newNetwork(t, 3)
	for _, s := range n.servers {
		s.open(func(cfg *cluster.Config) {
			cfg.PeerList = n.peers
			f := firewall{wrappedTCP: s.link.wrap}
			for _, other := range n.others(s) {
				f.closed = append(f.closed, other.raft)
			}
			cfg.Network = f
		})
	}
	startAll(n.servers...)
	for _, s := range n.servers {
		for _, other := range n.others(s) {
			eventually(t, "a warning of "+s.tag, func() bool {
				return slices.Contains(problems(s), other.tag+" on its Raft port, "+other.raft+" (i/o timeout)")
			})
		}
	}
}

// names is a name service of the test: NODE.test is loopback.
type names struct {
	mu    sync.Mutex
	fault func(ctx context.Context) error
}

func (s *names) lookup(ctx context.Context, host string) ([]string, error) {
	s.mu.Lock()
	fault := s.fault
	s.mu.Unlock()
	if fault != nil {
		return nil, fault(ctx)
	}
	if !strings.HasSuffix(host, ".test") {
		return nil, errors.New("no such host")
	}
	return []string{"127.0.0.1"}, nil
}

func (s *names) fail(fault func(ctx context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// TestTheLeaderDiesWhileNamesDoNotResolve: two healthy nodes elect the next one, and all
// start again.
func TestTheLeaderDiesWhileNamesDoNotResolve(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(ctx context.Context) error{
		"refused": func(context.Context) error { return errors.New("no such host") },
		"hanging": func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := &names{}
			n := newNetwork(t, 3)
			for _, s := range n.servers {
				n.peers[s.tag] = s.named(s.grpc)
				s.lookup = service.lookup
			}
			n.run(n.servers...)
			n.leader()
			last, _ := n.servers[0].eventuallyNext("users")
			for _, s := range n.servers {
				eventually(t, "the addresses in the record of "+s.tag, func() bool {
					r, err := member.Load(s.dir)
					return err == nil && len(r.Hosts) == 3
				})
			}
			service.fail(fault)
			leader := n.leader()
			leader.stop(true)
			other := n.others(leader)[0]
			n.leader()
			v, failed := other.eventuallyNext("users")
			if v <= last || v > last+1+failed {
				t.Errorf("%d came after %d", v, last)
			}
			n.stopAll()
			n.run(n.servers...)
			n.leader()
			leader.eventuallyNext("users")
		})
	}
}
