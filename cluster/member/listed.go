package member

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// doubtLimit is how long all that are listed must have been another cluster's where
	// one of them is at the address of a present member. Then it may be that one which is
	// at the wrong place, and it ends itself meanwhile.
	doubtLimit = 10 * time.Second
	// lastListPause is the longest wait between two rounds of questions.
	lastListPause = 5 * time.Second
	// firmRounds is how often a node that has met another cluster asks those that are
	// silent before it reports so: one answer may be late.
	firmRounds = 3
)

// Listed is a node that this one was told of when it was started. Tag is empty where
// only an address was given.
type Listed struct{ Tag, Address string }

func (l Listed) String() string {
	if l.Tag == "" {
		return l.Address
	}
	return l.Tag + " at " + l.Address
}

// ListCheck compares the addresses that a node was started with with the cluster that
// its data directory belongs to. A directory of one cluster that is started in the
// place of a node of another would serve that one's callers with ids of its own.
//
// What counts as an error is a list that is another cluster's: all nodes there belong
// to another one. A list that is this cluster's and has grown old is none, for its
// addresses may be anybody's by now: one node of this cluster that answers is enough,
// and so is its quorum.
type ListCheck struct {
	// Self returns this node as it introduces itself, ClusterID is its cluster.
	Self      func() *raftlogv1.Member
	ClusterID []byte
	// Listed are the nodes to ask.
	Listed []Listed
	// Members returns all members, removed ones too.
	Members func() []*raftlogv1.Member
	Greeter Greeter
	// Vouched reports whether the node has been known since its start to be where it
	// belongs. From then on there are only warnings.
	Vouched func() bool
	// Report is called after each round that gave no error, as soon as the answers count:
	// own says that a node of this cluster has answered, foreign that one of another has.
	Report func(own, foreign bool)
	// Tell is called with what is wrong with the list and is no error, when that
	// changes.
	Tell func(warnings []string)
	// Pause is between the first two rounds; zero means 200 ms. It doubles up to 5 s.
	Pause time.Duration

	// answers are what the nodes last said; nobody's is one that says no cluster.
	answers map[Listed]listedAnswer
	// own are addresses behind which this node itself has answered.
	own map[Listed]bool
}

// listedAnswer is what a listed node said.
type listedAnswer struct {
	cluster []byte
	// kin says that this node is a present member of that cluster. Then it is the same
	// one before or after a recovery, and not another.
	kin bool
}

// Run asks until each node has said that it belongs to this cluster, ctx ends, or the
// list is known to be another cluster's: then the error wraps ErrOtherCluster. Nodes
// that do not answer are asked again and again, because in a cold start all come up
// together.
func (c ListCheck) Run(ctx context.Context) error {
	c.answers, c.own = map[Listed]listedAnswer{}, map[Listed]bool{}
	wait := cmp.Or(c.Pause, defaultPause)
	var last []string
	var since time.Time
	for rounds := 1; ; rounds++ {
		c.round(ctx)
		if ctx.Err() != nil {
			return nil // What did not answer may have been cut off.
		}
		if !c.allForeign() {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		}
		if err := c.otherCluster(since); err != nil {
			return err
		}
		if warnings := c.warnings(); !slices.Equal(warnings, last) {
			last = warnings
			c.Tell(warnings)
		}
		if own, foreign := c.anyOwn(), len(last) > 0; own || !foreign || rounds >= firmRounds {
			c.Report(own, foreign)
		}
		if len(c.open()) == 0 || !pause(ctx, wait) {
			return nil
		}
		wait = min(2*wait, lastListPause)
	}
}

// open returns who is still to be asked: who has not said that it is of this cluster.
// Members that were removed are left out, and with them the addresses that they had.
func (c ListCheck) open() []Listed {
	var open []Listed
	for _, l := range c.Listed {
		if !bytes.Equal(c.answers[l].cluster, c.ClusterID) && !c.isSelf(l) && !c.isGone(l) {
			open = append(open, l)
		}
	}
	return open
}

func (c ListCheck) isSelf(l Listed) bool {
	self := c.Self()
	return c.own[l] || l.Tag != "" && l.Tag == self.GetTag() || l.Address == self.GetGrpcAddress()
}

// isGone reports whether the list names a member that was removed.
func (c ListCheck) isGone(l Listed) bool {
	gone := false
	for _, m := range c.Members() {
		if m.GetTag() == l.Tag || l.Tag == "" && m.GetGrpcAddress() == l.Address {
			if !m.GetRemoved() {
				return false
			}
			gone = true
		}
	}
	return gone
}

// isMembers reports whether an address is that of a present member.
func (c ListCheck) isMembers(l Listed) bool {
	return slices.ContainsFunc(c.Members(), func(m *raftlogv1.Member) bool {
		return !m.GetRemoved() && m.GetGrpcAddress() == l.Address
	})
}

// round asks all who are open at the same time. Once one of this cluster has answered
// nobody else is waited for.
func (c ListCheck) round(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	self := c.Self()
	for _, l := range c.open() {
		wg.Go(func() {
			response, err := c.Greeter.Hello(ctx, l.Tag, l.Address, &peerv1.HelloRequest{Self: self})
			mu.Lock()
			defer mu.Unlock()
			if err == nil && bytes.Equal(response.GetSelf().GetId(), self.GetId()) {
				c.own[l] = true
				return
			}
			c.answers[l] = listedAnswer{response.GetClusterId(), isPresent(self, response.GetMembers())}
			if bytes.Equal(response.GetClusterId(), c.ClusterID) {
				cancel()
			}
		})
	}
	wg.Wait()
}

// isPresent reports whether self is among members and not removed.
func isPresent(self *raftlogv1.Member, members []*raftlogv1.Member) bool {
	return slices.ContainsFunc(members, func(m *raftlogv1.Member) bool {
		return !m.GetRemoved() && bytes.Equal(m.GetId(), self.GetId())
	})
}

// foreign returns who belongs to another cluster.
func (c ListCheck) foreign() []Listed {
	return slices.DeleteFunc(c.open(), func(l Listed) bool { return len(c.answers[l].cluster) == 0 })
}

// anyOwn reports whether a node of this cluster has answered.
func (c ListCheck) anyOwn() bool {
	for _, a := range c.answers {
		if bytes.Equal(a.cluster, c.ClusterID) {
			return true
		}
	}
	return false
}

// allForeign reports whether there is nobody left who could say that this node is where
// it belongs: all who were asked are of another cluster.
func (c ListCheck) allForeign() bool {
	foreign := c.foreign()
	return !c.anyOwn() && len(foreign) > 0 && len(foreign) == len(c.open()) &&
		!slices.ContainsFunc(foreign, func(l Listed) bool { return c.answers[l].kin })
}

// otherCluster returns an error if the list is another cluster's, which all nodes on it have
// said since the time given; zero means that they have not. A node that has been vouched
// for does not end.
func (c ListCheck) otherCluster(since time.Time) error {
	if since.IsZero() || c.Vouched() {
		return nil
	}
	foreign := c.foreign()
	if slices.ContainsFunc(foreign, c.isMembers) && time.Since(since) < doubtLimit {
		return nil
	}
	return fmt.Errorf("%w: this data directory belongs to cluster %x, and %s to cluster %x; start this node with the directory that belongs here, or with the nodes of its own cluster in --peer or --join",
		ErrOtherCluster, c.ClusterID, foreign[0], c.answers[foreign[0]].cluster)
}

// warnings says what is wrong with the list.
func (c ListCheck) warnings() []string {
	var warnings []string
	for _, l := range c.foreign() {
		warnings = append(warnings, fmt.Sprintf("the list of peers is wrong, or another node is at the wrong place: %s belongs to cluster %x, this node to cluster %x",
			l, c.answers[l].cluster, c.ClusterID))
	}
	return warnings
}

// ListOf returns what a node was told by --peer and --join, each node once.
func ListOf(peers map[string]string, join []string) []Listed {
	var all []Listed
	for tag, address := range peers {
		all = append(all, Listed{tag, address})
	}
	for _, address := range join {
		all = append(all, Listed{Address: address})
	}
	slices.SortFunc(all, func(a, b Listed) int { return strings.Compare(a.Tag+"="+a.Address, b.Tag+"="+b.Address) })
	return slices.Compact(all)
}
