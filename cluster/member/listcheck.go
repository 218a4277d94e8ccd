package member

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/idnode/idnode/internal/pause"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

const (
	// otherClusterLimit is how long all listed nodes must have been another cluster's if one
	// of them has the address of a present member. That node may be the misplaced node
	// instead, and then ends itself within this time.
	otherClusterLimit = 10 * time.Second
	// lastListPause is the longest wait between two rounds.
	lastListPause = 5 * time.Second
	// firmRounds is the number of rounds in which a node that has found another cluster asks
	// the silent nodes before it reports the other cluster: an answer may be late.
	firmRounds = 3
)

// Listed is a node in this node's --peer or --join. Tag is empty if only an address was
// given.
type Listed struct{ Tag, Address string }

func (l Listed) String() string {
	if l.Tag == "" {
		return l.Address
	}
	return l.Tag + " at " + l.Address
}

// ListCheck compares the addresses of a node's configuration with the cluster of its data
// directory. A directory that is started in the place of another cluster's node would serve
// that cluster's callers with its own ids.
//
// It is an error if all listed nodes belong to another cluster. An outdated list is no
// error, because addresses of former members may belong to other nodes by now: one answer
// of this cluster is enough, and so is its quorum.
type ListCheck struct {
	// Self returns this node as it introduces itself; ClusterID is the cluster's id.
	Self      func() *raftlogv1.Member
	ClusterID []byte
	// Listed are the nodes to ask.
	Listed []Listed
	// Members returns all members, including removed ones.
	Members func() []*raftlogv1.Member
	Greeter Greeter
	// State gets what the answers mean, once they count, and the problems of the list that are
	// no errors, when they change. Once the node is confirmed, Run only warns.
	State *ClusterCheck

	// answers are the nodes' last answers; an answer without a cluster is no evidence.
	answers map[Listed]listedAnswer
	// own are the addresses at which this node itself answered.
	own map[Listed]bool
}

type listedAnswer struct {
	cluster []byte
	// knowsUs means that this node is a present member of that cluster: then it is the same
	// cluster before or after a recovery.
	knowsUs bool
}

// Run repeats rounds until each node has answered that it belongs to this cluster, ctx ends,
// or the list is known to be another cluster's: then the error wraps ErrOtherCluster. Silent
// nodes are asked again, because in a cold start all nodes start at the same time.
func (c ListCheck) Run(ctx context.Context) error {
	c.answers, c.own = map[Listed]listedAnswer{}, map[Listed]bool{}
	wait := firstPause
	var last []string
	var since time.Time
	for rounds := 1; ; rounds++ {
		c.round(ctx)
		if ctx.Err() != nil {
			return nil // Nodes that did not answer may have been cut off.
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
			c.State.Warn(warnings)
		}
		if own, foreign := c.anyOwn(), len(last) > 0; own || !foreign || rounds >= firmRounds {
			c.State.Report(own, foreign)
		}
		if len(c.open()) == 0 || !pause.For(ctx, wait) {
			return nil
		}
		wait = min(2*wait, lastListPause)
	}
}

// open returns the nodes that are still to be asked: those not known to be in this cluster.
// Removed members and their addresses are left out.
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

func (c ListCheck) isMembers(l Listed) bool {
	return slices.ContainsFunc(c.Members(), func(m *raftlogv1.Member) bool {
		return !m.GetRemoved() && m.GetGrpcAddress() == l.Address
	})
}

// round asks all open nodes at the same time. It returns once a node of this cluster has
// answered.
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

func isPresent(self *raftlogv1.Member, members []*raftlogv1.Member) bool {
	return slices.ContainsFunc(members, func(m *raftlogv1.Member) bool {
		return !m.GetRemoved() && bytes.Equal(m.GetId(), self.GetId())
	})
}

func (c ListCheck) foreign() []Listed {
	return slices.DeleteFunc(c.open(), func(l Listed) bool { return len(c.answers[l].cluster) == 0 })
}

func (c ListCheck) anyOwn() bool {
	for _, a := range c.answers {
		if bytes.Equal(a.cluster, c.ClusterID) {
			return true
		}
	}
	return false
}

// allForeign reports whether all listed nodes are of another cluster, so that none could
// still confirm this node.
func (c ListCheck) allForeign() bool {
	foreign := c.foreign()
	return !c.anyOwn() && len(foreign) > 0 && len(foreign) == len(c.open()) &&
		!slices.ContainsFunc(foreign, func(l Listed) bool { return c.answers[l].knowsUs })
}

// otherCluster returns an error if all nodes have been another cluster's since the given
// time; zero means that they are not. A confirmed node never ends.
func (c ListCheck) otherCluster(since time.Time) error {
	if since.IsZero() || c.State.isConfirmed.Load() {
		return nil
	}
	foreign := c.foreign()
	if slices.ContainsFunc(foreign, c.isMembers) && time.Since(since) < otherClusterLimit {
		return nil
	}
	return fmt.Errorf("%w: this data directory belongs to cluster %x, and %s to cluster %x; start this node with the directory that "+
		"belongs here, or with the nodes of its own cluster in --peer or --join",
		ErrOtherCluster, c.ClusterID, foreign[0], c.answers[foreign[0]].cluster)
}

func (c ListCheck) warnings() []string {
	var warnings []string
	for _, l := range c.foreign() {
		warnings = append(warnings,
			fmt.Sprintf("the list of peers is wrong, or another node is at the wrong place: %s belongs to cluster %x, this node to cluster %x",
				l, c.answers[l].cluster, c.ClusterID))
	}
	return warnings
}

// ListOf returns the nodes of --peer and --join, each once.
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
