package cluster_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/member"
	"github.com/idnode/idnode/cluster/store"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/test/tier"
)

// TestSurvivorsOfDifferentTerms recovers two of three nodes, each of which has stored
// entries that the other has not. B has the newer term, so it leads; the end of its log
// is below A's, at the same index, or above.
func TestSurvivorsOfDifferentTerms(t *testing.T) {
	tier.Long(t)
	for name, more := range map[string]int{"below": 1, "at the same index": 3, "above": 5} {
		t.Run(name, func(t *testing.T) {
			n := startNetwork(t, 3)
			last := n.servers[0].mustNext("users")
			n.agree()
			n.stopAll()
			n.servers = n.servers[:2]
			n.servers[0].store(3, raft.LogCommand, 10)
			n.servers[1].store(more, raft.LogNoop, 11)
			for _, s := range n.servers {
				s.recover([]string{"A", "B"})
			}
			n.run(n.servers...)
			if leader := n.leader(); leader.tag != "B" {
				t.Errorf("%s leads", leader.tag)
			}
			for range 5 {
				for _, s := range n.servers {
					next := s.mustNext("users")
					if next <= last {
						t.Errorf("%d after %d", next, last)
					}
					last = next
				}
			}
			n.agree()
			for _, s := range n.servers {
				s.stop(true)
			}
			n.run(n.servers...)
			n.servers[0].mustNext("users")
		})
	}
}

// TestTheSurvivorThatStoredMostComesLast recovers three of five nodes. Two of them lead
// before the third one is back, which has stored entries that they have not. Its own
// snapshot ends behind theirs, or in a newer term.
func TestTheSurvivorThatStoredMostComesLast(t *testing.T) {
	tier.Long(t)
	for name, term := range map[string]uint64{"further": 0, "in a newer term": 10} {
		t.Run(name, func(t *testing.T) {
			n := startNetwork(t, 5)
			last := n.servers[0].mustNext("users")
			n.agree()
			n.stopAll()
			n.servers = n.servers[:3]
			a, others := n.servers[0], n.servers[1:]
			a.store(3, raft.LogCommand, term)
			for _, s := range n.servers {
				s.recover([]string{"A", "B", "C"})
			}
			n.run(others...)
			for _, s := range others {
				next := s.mustNext("users")
				if next <= last {
					t.Errorf("%d after %d", next, last)
				}
				last = next
			}
			n.run(a)
			if next := a.mustNext("users"); next <= last {
				t.Errorf("%d after %d", next, last)
			}
			n.agree()
		})
	}
}

// TestASurvivorThatWasSetBack recovers two of three nodes, one of which has an older copy
// of its directory: it was refused for that before, or nobody has noticed yet. That the
// node goes on nevertheless was a person's decision, and the new cluster takes it.
func TestASurvivorThatWasSetBack(t *testing.T) {
	tier.Long(t)
	for name, noticed := range map[string]bool{"refused before": true, "unnoticed before": false} {
		t.Run(name, func(t *testing.T) {
			n := startNetwork(t, 3)
			a, b := n.servers[0], n.servers[1]
			b.stop(true)
			older := copyOf(t, b)
			last := int64(0)
			for range 4 {
				n.run(b)
				last = b.mustNext("users") // Its start has been announced by then.
				n.agree()
				b.stop(true)
			}
			setBack(t, b, older)
			if noticed {
				n.run(b)
				wantSetBack(t, b)
			}
			n.stopAll()
			n.servers = []*server{a, b}
			for range 2 { // Whoever is in doubt recovers once more.
				for _, s := range n.servers {
					s.recover([]string{"A", "B"})
				}
			}
			for range 2 {
				n.run(a, b)
				for _, s := range []*server{b, a} {
					next := s.mustNext("users")
					if next <= last {
						t.Errorf("%d after %d", next, last)
					}
					last = next
				}
				n.agree()
				n.stopAll()
			}
		})
	}
}

// store appends so many entries to the log of the stopped node, each with the contents
// of its newest command. Term 0 is that of the log's end.
func (s *server) store(count int, kind raft.LogType, term uint64) {
	s.t.Helper()
	record, err := member.Load(s.dir)
	s.must(err)
	db, err := store.Open(store.Config{
		Dir: s.dir, NodeID: record.ID.String(), MustExist: true, Logger: slog.New(slog.DiscardHandler),
		Watchdog: store.Watchdog{Limit: time.Minute, Fatal: func(err error) { s.t.Error(err) }},
	})
	s.must(err)
	last, err := db.LastIndex()
	s.must(err)
	newest := raft.Log{Type: raft.LogNoop}
	if term == 0 {
		s.must(db.GetLog(last, &newest))
		term, newest.Type = newest.Term, raft.LogNoop
	}
	for at := last; newest.Type != raft.LogCommand; at-- {
		s.must(db.GetLog(at, &newest))
	}
	for i := range uint64(count) {
		s.must(db.StoreLog(&raft.Log{Index: last + 1 + i, Term: term, Type: kind, Data: newest.Data}))
	}
	current, err := db.GetUint64([]byte("CurrentTerm"))
	s.must(err)
	s.must(db.SetUint64([]byte("CurrentTerm"), max(current, term)))
	s.must(db.Close())
}

// recover makes the stopped node one of a new cluster.
func (s *server) recover(keep []string) {
	s.t.Helper()
	state := fsm.New(fsm.Config{})
	s.must(cluster.Recover(context.Background(), cluster.Recovery{
		DataDir: s.dir, Keep: keep, StateMachine: state, Registry: state, Logger: logger(s.t, s.tag),
		TakeSnapshot: func() cluster.Snapshot { return state.Snapshot() },
		Change: func() error {
			_, err := state.Recover(fsm.Recovery{Keep: keep, SkipAhead: 1000})
			return err
		},
	}))
}

func (s *server) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatalf("%s: %v", s.tag, err)
	}
}
