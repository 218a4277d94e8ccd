package member

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/internal/pause"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Greeter asks other nodes for their identity.
type Greeter interface {
	Hello(ctx context.Context, tag, address string, req *peerv1.HelloRequest) (*peerv1.HelloResponse, error)
}

const (
	// helloTimeout bounds one Hello call; it is longer than a name lookup and a TLS
	// handshake on a busy machine.
	helloTimeout = 2 * time.Second
	// firstPause is the wait between two rounds, at first.
	firstPause = 200 * time.Millisecond
)

// FirstStart finds the place of a node that was started with a list of peers and has no
// cluster yet.
//
// Invariant: a cluster is formed only by the node with the lowest tag, and only when every
// node on the list has answered in the same round, with the same list, and without a
// cluster. So a wiped node never forms a second cluster beside an existing cluster: a peer
// that answers knows the cluster, or not all answer.
type FirstStart struct {
	// Self is this node, with its tag.
	Self *raftlogv1.Member
	// Peers are the nodes' addresses by tag, this node's included.
	Peers   map[string]string
	Greeter Greeter
	Logger  *slog.Logger
	// Tell is called after each round with the reason why the cluster is not formed.
	Tell func(error)
}

// Run repeats rounds until the place is found, ctx ends, or the node is permanently refused:
// then the error wraps ErrTagTaken, ErrRemoved or ErrNotInCluster. Temporary problems, such
// as a peer that is down or has another list, go to Tell, and are part of the error if ctx
// ends.
func (s FirstStart) Run(ctx context.Context) (Place, error) {
	complaints := Complaints{Logger: s.Logger}
	for {
		answers, problem := s.round(ctx)
		place, err := s.decide(answers, problem)
		if !errors.Is(err, errUndecided) {
			return place, err
		}
		complaints.Log("the cluster is not formed yet", err)
		s.Tell(err)
		if !pause.For(ctx, firstPause) {
			return Place{}, fmt.Errorf("member: first start: %w: %w", context.Cause(ctx), err)
		}
	}
}

// errUndecided means that another round may decide.
var errUndecided = errors.New("not decided")

type helloReply struct {
	tag      string
	response *peerv1.HelloResponse
}

// round asks all peers at the same time. The problem joins all reasons why the cluster
// cannot be formed.
func (s FirstStart) round(ctx context.Context) ([]helloReply, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var answers []helloReply
	problems := map[string]error{}
	for tag, address := range s.Peers {
		wg.Go(func() {
			response, err := s.Greeter.Hello(ctx, tag, address, &peerv1.HelloRequest{Self: s.Self, PeersHash: PeersHash(s.Peers)})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				problems[tag] = fmt.Errorf("%s at %s does not answer: %w", tag, address, err)
				return
			}
			answers = append(answers, helloReply{tag: tag, response: response})
			problems[tag] = s.check(tag, response)
			if len(response.GetClusterId()) > 0 {
				cancel() // There is a cluster: the other answers are not needed.
			}
		})
	}
	wg.Wait()
	slices.SortFunc(answers, func(a, b helloReply) int { return strings.Compare(a.tag, b.tag) })
	return answers, joinSorted(problems)
}

func (s FirstStart) check(tag string, r *peerv1.HelloResponse) error {
	_, badID := nodeid.FromBytes(r.GetSelf().GetId())
	isSelf := bytes.Equal(r.GetSelf().GetId(), s.Self.GetId())
	switch {
	case badID != nil:
		return fmt.Errorf("%s says it has no Raft id: %w", tag, badID)
	case r.GetSelf().GetTag() != tag:
		return fmt.Errorf("at the address of %s, node %q answers", tag, r.GetSelf().GetTag())
	case tag == s.Self.GetTag() && !isSelf:
		return fmt.Errorf("at the address of %s, this node's own tag, another node answers", tag)
	case tag != s.Self.GetTag() && isSelf:
		return fmt.Errorf("at the address of %s, this node itself answers", tag)
	case len(r.GetClusterId()) == 0 && !bytes.Equal(r.GetPeersHash(), PeersHash(s.Peers)):
		return fmt.Errorf("%s was started with another list of peers: all nodes need the same one", tag)
	}
	return nil
}

func (s FirstStart) decide(answers []helloReply, problem error) (Place, error) {
	for _, a := range answers {
		if len(a.response.GetClusterId()) > 0 {
			return adopt(s.Self, a.response.GetClusterId(), a.response.GetMembers())
		}
	}
	if problem != nil {
		return Place{}, fmt.Errorf("%w: %w", errUndecided, problem)
	}
	members := make([]*raftlogv1.Member, 0, len(answers))
	for _, a := range answers {
		members = append(members, a.response.GetSelf())
	}
	return s.form(members)
}

// form forms the cluster, if this node has the lowest tag of those that may lead.
func (s FirstStart) form(members []*raftlogv1.Member) (Place, error) {
	for _, m := range sortedByTag(members) {
		switch {
		case m.GetWatcher():
			continue // A watcher cannot lead, and so cannot be the first to have the log.
		case m.GetTag() == s.Self.GetTag():
			place := found(members)
			place.Tag = s.Self.GetTag()
			return place, nil
		}
		return Place{}, fmt.Errorf("%w: waiting for %s to form the cluster", errUndecided, m.GetTag())
	}
	return Place{}, fmt.Errorf("%w: all nodes on the list are watchers", errUndecided)
}

// joinSorted joins errors in the order of their keys, so that equal problems have equal
// texts.
func joinSorted(problems map[string]error) error {
	var all []error
	for _, tag := range slices.Sorted(maps.Keys(problems)) {
		all = append(all, problems[tag])
	}
	return errors.Join(all...)
}
