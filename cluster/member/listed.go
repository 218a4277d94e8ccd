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
	// doubtLimit is how long a node waits for a word in its favour when another
	// cluster's node answers at the address of one of its own members. A node of the
	// other cluster that was put there by mistake ends itself meanwhile.
	doubtLimit = 10 * time.Second
	// lastListPause is the longest wait between two rounds of questions.
	lastListPause = 5 * time.Second
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
// What counts as an error is a list that is another cluster's: the nodes there belong
// to another one, and none belongs to this. A list that is this cluster's and has
// grown old is none, for its addresses may be anybody's by now.
type ListCheck struct {
	// Self returns this node as it introduces itself, ClusterID is its cluster.
	Self      func() *raftlogv1.Member
	ClusterID []byte
	// Listed are the nodes to ask.
	Listed []Listed
	// Members returns all members, removed ones too.
	Members func() []*raftlogv1.Member
	Greeter Greeter
	// Tell is called with what is wrong with the list and is no error, when that
	// changes.
	Tell func(warnings []string)
	// Pause is between the first two rounds; zero means 200 ms. It doubles up to 5 s.
	Pause time.Duration

	// answers has the cluster id that each node last told; empty if it told none.
	answers map[Listed][]byte
	// own are addresses behind which this node itself has answered.
	own map[Listed]bool
}

// Run asks until each node has said that it belongs to this cluster, ctx ends, or the
// list is known to be another cluster's: then the error wraps ErrOtherCluster. Nodes
// that do not answer are asked again and again, because in a cold start all come up
// together. judged is called when the first round did not give an error.
func (c ListCheck) Run(ctx context.Context, judged func()) error {
	c.answers, c.own = map[Listed][]byte{}, map[Listed]bool{}
	wait, started := cmp.Or(c.Pause, defaultPause), time.Now()
	var last []string
	for {
		c.round(ctx)
		if ctx.Err() != nil {
			return nil // What did not answer may have been cut off.
		}
		if err := c.verdict(time.Since(started) >= doubtLimit); err != nil {
			return err
		}
		if warnings := c.warnings(); !slices.Equal(warnings, last) {
			last = warnings
			c.Tell(warnings)
		}
		judged()
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
		if !bytes.Equal(c.answers[l], c.ClusterID) && !c.isSelf(l) && !c.isGone(l) {
			open = append(open, l)
		}
	}
	return open
}

func (c ListCheck) isSelf(l Listed) bool {
	self := c.Self()
	return c.own[l] || l.Tag != "" && l.Tag == self.GetTag() || l.Address == self.GetGrpcAddress()
}

// isGone says whether the list names a member that was removed.
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

// isMembers says whether an address is that of a present member.
func (c ListCheck) isMembers(l Listed) bool {
	return slices.ContainsFunc(c.Members(), func(m *raftlogv1.Member) bool {
		return !m.GetRemoved() && m.GetGrpcAddress() == l.Address
	})
}

// round asks all who are open at the same time.
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
			c.answers[l] = response.GetClusterId()
		})
	}
	wg.Wait()
}

// foreign returns who belongs to another cluster.
func (c ListCheck) foreign() []Listed {
	var foreign []Listed
	for _, l := range c.open() {
		if len(c.answers[l]) > 0 {
			foreign = append(foreign, l)
		}
	}
	return foreign
}

// verdict returns an error if the list is another cluster's. Where a node of another
// cluster is at the address of one of this one's own members, it may be that one which
// is at the wrong place: that is an error only once nobody is left who could say
// otherwise, or none has for long.
func (c ListCheck) verdict(longEnough bool) error {
	for _, id := range c.answers {
		if bytes.Equal(id, c.ClusterID) {
			return nil
		}
	}
	foreign := c.foreign()
	for _, l := range foreign {
		if longEnough || len(foreign) == len(c.open()) || !c.isMembers(l) {
			return fmt.Errorf("%w: this data directory belongs to cluster %x, and %s to cluster %x; start this node with the directory that belongs here, or with the nodes of its own cluster in --peer or --join",
				ErrOtherCluster, c.ClusterID, l, c.answers[l])
		}
	}
	return nil
}

// warnings says what is wrong with the list.
func (c ListCheck) warnings() []string {
	var warnings []string
	for _, l := range c.foreign() {
		warnings = append(warnings, fmt.Sprintf("the list of peers is wrong, or another node is at the wrong place: %s belongs to cluster %x, this node to cluster %x",
			l, c.answers[l], c.ClusterID))
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
