package transport

import (
	"context"
	"errors"
	"sync"

	"github.com/hashicorp/raft"
)

// ErrNewerTerm means that a node answered from a newer term: there is, or will
// be, another leader.
var ErrNewerTerm = errors.New("a node answered from a newer term")

// Mark is a moment among the messages this node has sent; a later one is greater.
type Mark uint64

// answers remembers the newest message of a leader's that each node answered.
// The library itself only knows that an answer came, not which message it was
// to: after a pause of this process an answer from before the pause would tell
// it that it still leads.
type answers struct {
	mu   sync.Mutex
	mark Mark
	// newest is the newest term that any answer came from.
	newest uint64
	byID   map[raft.ServerID]answered
	// changed is closed at the next answer, if somebody waits for one.
	changed chan struct{}
}

// answered is a message of a leader's in term, sent at a moment, that was
// answered in the same term.
type answered struct {
	term uint64
	sent Mark
}

func newAnswers() *answers { return &answers{byID: map[raft.ServerID]answered{}} }

// next returns a moment after all that were returned before.
func (a *answers) next() Mark {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mark++
	return a.mark
}

// heard takes note of an answer from term to a message of the term asked.
func (a *answers) heard(id raft.ServerID, sent Mark, asked, term uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.newest = max(a.newest, term)
	if term == asked && sent > a.byID[id].sent {
		a.byID[id] = answered{term: asked, sent: sent}
	}
	if a.changed != nil {
		close(a.changed)
		a.changed = nil
	}
}

// enough says whether a majority of the voters, self included, answered in term
// to messages that were sent after since; if not, it returns what to wait for.
func (a *answers) enough(since Mark, term uint64, voters []raft.ServerID, self raft.ServerID) (bool, <-chan struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.newest > term {
		return false, nil, ErrNewerTerm
	}
	count := 0
	for _, id := range voters {
		if heard := a.byID[id]; id == self || heard.term == term && heard.sent > since {
			count++
		}
	}
	if count > len(voters)/2 {
		return true, nil, nil
	}
	if a.changed == nil {
		a.changed = make(chan struct{})
	}
	return false, a.changed, nil
}

// AppendEntries implements raft.Transport.
func (t *Transport) AppendEntries(id raft.ServerID, target raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	sent := t.answers.next()
	if err := t.NetworkTransport.AppendEntries(id, target, args, resp); err != nil {
		return err
	}
	t.answers.heard(id, sent, args.Term, resp.Term)
	return nil
}

// Mark returns the present moment, for AwaitMajority.
func (t *Transport) Mark() Mark { return t.answers.next() }

// AwaitMajority waits until a majority of the voters has answered messages that
// this node sent after since as the leader of term; this node counts as one if
// it is among them. It sends nothing itself. The error is ErrNewerTerm, or ctx's.
func (t *Transport) AwaitMajority(ctx context.Context, since Mark, term uint64, voters []raft.ServerID) error {
	for {
		done, changed, err := t.answers.enough(since, term, voters, raft.ServerID(t.stream.local.String()))
		if done || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
