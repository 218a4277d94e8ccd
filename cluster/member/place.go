package member

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// Place is a node's place in its cluster, as its record has it after Apply.
type Place struct {
	ClusterID []byte
	Tag       string
	// Founder is set on the one node that bootstraps Raft.
	Founder bool
	// Confirmed is set if the cluster itself has confirmed the tag.
	Confirmed bool
	Members   []*raftlogv1.Member
}

// Apply writes the place into a record.
func (p Place) Apply(r *Record) {
	r.ClusterID, r.Tag, r.Founder = p.ClusterID, p.Tag, p.Founder
	r.TagConfirmed = p.Confirmed
	r.Members = cloneMembers(p.Members)
}

// ClusterIDSize is the length of a cluster id in bytes.
const ClusterIDSize = 16

// ClusterIDOf returns the id of the cluster that these first members form: a hash of their
// tags and Raft ids, in the order of the tags. So the id identifies the founders, and two
// clusters never share an id.
func ClusterIDOf(members []*raftlogv1.Member) []byte {
	sorted := sortedByTag(members)
	h := sha256.New()
	for _, m := range sorted {
		fmt.Fprintf(h, "%s %x\n", m.GetTag(), m.GetId())
	}
	return h.Sum(nil)[:ClusterIDSize]
}

func sortedByTag(members []*raftlogv1.Member) []*raftlogv1.Member {
	return slices.SortedFunc(slices.Values(members), func(a, b *raftlogv1.Member) int {
		return strings.Compare(a.GetTag(), b.GetTag())
	})
}

// PeersHash returns a hash of a list of peers, addresses by tag. Nodes compare the hashes
// before they form a cluster.
func PeersHash(peers map[string]string) []byte {
	h := sha256.New()
	for _, tag := range slices.Sorted(maps.Keys(peers)) {
		fmt.Fprintf(h, "%s=%s\n", tag, peers[tag])
	}
	return h.Sum(nil)
}

// Alone returns the place of a node that forms a cluster by itself.
func Alone(self *raftlogv1.Member) Place {
	place := found([]*raftlogv1.Member{self})
	place.Tag = self.GetTag()
	return place
}

// found returns the place of the node that forms a cluster of these members. All but
// watchers are voters from the start.
func found(members []*raftlogv1.Member) Place {
	members = cloneMembers(sortedByTag(members))
	for _, m := range members {
		m.Voter = !m.GetWatcher()
	}
	return Place{ClusterID: ClusterIDOf(members), Founder: true, Members: members}
}

func adopt(self *raftlogv1.Member, clusterID []byte, members []*raftlogv1.Member) (Place, error) {
	for _, m := range members {
		sameID := bytes.Equal(m.GetId(), self.GetId())
		switch {
		case sameID && m.GetRemoved():
			return Place{}, fmt.Errorf("%w (tag %s)", ErrRemoved, m.GetTag())
		case sameID && m.GetTag() == self.GetTag():
			return Place{ClusterID: clusterID, Tag: m.GetTag(), Members: members}, nil
		case !sameID && m.GetTag() == self.GetTag():
			return Place{}, tagTaken(m)
		}
	}
	return Place{}, fmt.Errorf("%w: cluster %x has no member %s; start it with --join and an address of a member "+
		"in place of the list of peers",
		ErrNotInCluster, clusterID, self.GetTag())
}
