package model

import (
	"fmt"
	"hash/fnv"

	"github.com/idnode/idnode/raftlog"
)

// Delete has a member begin to delete entries: the beginning of its log, as far as its
// snapshot goes, or the end, as far as it is not committed.
func (c *Cluster) Delete(member string, first, last uint64) error {
	l := c.members[member]
	for index := first; index <= last; index++ {
		s, have := l.entries[index]
		if !have {
			continue
		}
		if index > l.Base && index <= c.Committed() && c.decided[index].term == s.term {
			return fmt.Errorf("deletes entry %d of term %d, which is committed", index, s.term)
		}
		l.entries[index] = slot{s.term, deleting}
	}
	return nil
}

// Deleted has entries gone.
func (c *Cluster) Deleted(member string, first, last uint64) error {
	l := c.members[member]
	if last >= l.Length && first > l.Base {
		if err := l.Cut(first - 1); err != nil {
			return err
		}
		for len(l.voters) > 0 && l.voters[len(l.voters)-1].index >= first {
			l.voters = l.voters[:len(l.voters)-1]
		}
	} else if last >= l.Length {
		l.Length, l.Synced = l.Base, l.Base
	}
	for index := first; index <= last; index++ {
		delete(l.entries, index)
	}
	return nil
}

// Snapshot has a member's snapshot on its disk, its own or another's.
func (c *Cluster) Snapshot(member string, index, term uint64, voters []string) error {
	l := c.members[member]
	before := l.Base
	if err := l.Member.Snapshot(index, c.Committed()); err != nil {
		return err
	}
	if want := c.decided[index].term; term != want {
		return fmt.Errorf("has a snapshot of entry %d of term %d, which is of term %d", index, term, want)
	}
	if l.Base == before {
		return nil
	}
	l.ends = term
	// A change of the members that an installed snapshot has passed need not be the one
	// before its own, by which a leader counts as well.
	if n := len(l.voters); n == 0 || l.voters[n-1].index < index {
		l.voters = []membership{{index, voters}}
	}
	return nil
}

// Restore has a member's state begin with that of a snapshot. Behind its applied index
// the snapshot has nothing that the state sees.
func (c *Cluster) Restore(member string, applied uint64) error {
	l := c.members[member]
	if applied > l.Base {
		return fmt.Errorf("restores a state of entry %d, and has a snapshot of %d", applied, l.Base)
	}
	return l.Install(applied)
}

// Apply has a member apply an entry that the state sees.
func (c *Cluster) Apply(member string, index, digest uint64) error {
	l := c.members[member]
	if err := l.MayApply(index, c.Committed()); err != nil {
		return fmt.Errorf("%w: entry %d", err, index)
	}
	at := c.decided[index]
	if e := c.known[at]; e != nil && e.Kind == Command && e.Digest != digest {
		return fmt.Errorf("applies another entry %d than that of term %d, which is committed", index, at.term)
	}
	for i := l.Applied + 1; i < index; i++ {
		if e := c.known[c.decided[i]]; e != nil && e.Kind != Other {
			return fmt.Errorf("applies entry %d, and has not applied %d", index, i)
		}
	}
	l.Applied, c.applied = index, max(c.applied, index)
	return nil
}

// Answer is what a member's state answers to the groups of an entry, in order. The first
// member that applies it shows what the groups are answered, others must agree.
func (c *Cluster) Answer(index, digest uint64, groups []raftlog.Group, results []raftlog.GroupResult, effect func(i int) error) error {
	if before, known := c.responses[index]; known {
		if before != digest {
			return fmt.Errorf("answers entry %d otherwise than another", index)
		}
		return nil
	}
	c.responses[index] = digest
	if len(groups) != len(results) {
		return fmt.Errorf("answers %d groups with %d results", len(groups), len(results))
	}
	for i, g := range groups {
		if err := c.name(g); err != nil {
			return err
		}
		took, err := c.sessions.Answer(index, g, results[i])
		if err != nil {
			return err
		}
		if !took {
			continue
		}
		if err := effect(i); err != nil {
			return err
		}
	}
	return nil
}

// name has a number name one group.
func (c *Cluster) name(g raftlog.Group) error {
	if len(g.Origin) == 0 {
		return nil
	}
	h := fnv.New64a()
	for _, o := range g.Operations {
		_, _ = h.Write(o)
	}
	name := groupName{string(g.Origin), g.Session, g.Sequence}
	if before, known := c.groups[name]; known && before != h.Sum64() {
		return fmt.Errorf("group %d of session %d is another than it was before", g.Sequence, g.Session)
	}
	c.groups[name] = h.Sum64()
	return nil
}

// Sessions are the open ones.
func (c *Cluster) Sessions() *Sessions { return &c.sessions }

// Etags are those of one node, by its raw id.
func (c *Cluster) Etags(node []byte) *Etags {
	if c.etags[string(node)] == nil {
		c.etags[string(node)] = &Etags{}
	}
	return c.etags[string(node)]
}

// Ranges are those of a HiLo tag, by both folded names.
func (c *Cluster) Ranges(database, tag string) *Ranges {
	name := [2]string{database, tag}
	if c.ranges[name] == nil {
		c.ranges[name] = &Ranges{}
	}
	return c.ranges[name]
}

// Tags are those of the members.
func (c *Cluster) Tags() *Tags { return &c.tags }

// Applied is up to where any member has applied.
func (c *Cluster) Applied() uint64 { return c.applied }
