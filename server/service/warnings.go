package service

import (
	"maps"
	"slices"
	"strings"

	"github.com/idnode/idnode/client/docid"
)

// AllWarnings are the warnings of the node, of members that it does not reach, and of full disks, one
// line each. They are part of a node's readiness, health and status.
func (c ClusterStatus) AllWarnings() []string {
	all := slices.Clone(c.Warnings)
	for _, tag := range c.membersWith(func(m Condition) bool { return m.Problem != "" }) {
		all = append(all, "member "+tag+" does not answer "+c.Conditions[tag].Problem)
	}
	if full, means := c.FullDisks(); full != "" {
		all = append(all, "the disk of "+full+" is nearly full: "+means)
	}
	return all
}

// FullDisks returns the tags of the members whose disks are nearly full, and the effect on callers of
// the node asked. Nothing is written if the leader or a majority has no room. Without a quorum calls are
// refused for another reason than disks.
func (c ClusterStatus) FullDisks() (tags, means string) {
	tags = c.TagsWith(func(m Condition) bool { return m.Answer.GetStorageFull() })
	if c.RefusesForStorage() {
		return tags, "identities, new ranges and claims are refused with STORAGE_FULL until there is room, in bytes and in inodes"
	}
	return tags, "such a node leads only if no other can; no call is refused for that"
}

// RefusesForStorage reports whether calls that need the log are refused for want of room.
func (c ClusterStatus) RefusesForStorage() bool {
	full := func(tag string) bool { return c.Conditions[tag].Answer.GetStorageFull() }
	voters := slices.DeleteFunc(slices.Clone(c.VoterTags), func(tag string) bool { return !full(tag) })
	return c.HasQuorum && c.Unserved == nil && (full(c.LeaderTag) || len(voters) > len(c.VoterTags)/2)
}

// TagsWith returns the tags of the members in some condition, as a text; empty if there are none.
func (c ClusterStatus) TagsWith(is func(Condition) bool) string {
	return strings.Join(c.membersWith(is), ", ")
}

func (c ClusterStatus) membersWith(is func(Condition) bool) []string {
	tags := slices.SortedFunc(maps.Keys(c.Conditions), docid.CompareNodeTags)
	return slices.DeleteFunc(tags, func(tag string) bool { return !is(c.Conditions[tag]) })
}
