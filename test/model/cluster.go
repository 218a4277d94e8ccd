package model

import (
	"errors"
	"fmt"
	"slices"
)

// Kind is what an entry of the log is for.
type Kind uint8

const (
	// Command has groups for the state.
	Command Kind = iota + 1
	// Voters says who votes, from the moment that it is in a log.
	Voters
	// Other is what the state never sees.
	Other
)

// Entry is an entry of the log as a member writes it.
type Entry struct {
	Index, Term uint64
	Kind        Kind
	// Digest tells contents apart.
	Digest uint64
	// Voters are those of an entry of that kind.
	Voters []string
}

// Cluster has the members of a cluster, and what each has done. It judges the steps of a
// real one as they happen.
type Cluster struct {
	members map[string]*log
	terms   map[uint64]*term
	// known are the entries that were ever written, and decided those that are committed.
	known     map[position]*written
	decided   []position
	sessions  Sessions
	applied   uint64
	responses map[uint64]uint64
	// groups are the digests of what was applied under a number.
	groups map[groupName]uint64
	etags  map[string]*Etags
	ranges map[[2]string]*Ranges
	tags   Tags
}

// groupName names one group.
type groupName struct {
	origin            string
	session, sequence uint64
}

// position names an entry: by log matching there is one of a term at an index.
type position struct{ index, term uint64 }

// written is an entry that a leader has made.
type written struct {
	Entry
	before uint64 // the term of the entry before it
}

// term is what is known of a term.
type term struct {
	leader string
	// votes has who votes for whom.
	votes map[string]string
	// ends has where the logs of its members ended when they heard of it.
	ends map[string]End[uint64]
	// have is up to where members have written entries of this term in this term.
	have map[string]uint64
	// committed is up to where its leader has committed the log.
	committed uint64
}

// log is a member with its log.
type log struct {
	Member[uint64]
	entries map[uint64]slot
	// ends is the term of the snapshot's last entry.
	ends uint64
	// wrote is the last entry that this process has written, or found on its disk.
	wrote End[uint64]
	// voters are the entries of that kind.
	voters []membership
	// voted is the term of the newest vote on the disk, and candidate whom it is for.
	voted     uint64
	candidate string
	// older says that the disk is an older copy of what the member had.
	older bool
}

type slot struct {
	term  uint64
	state durability
}

type durability uint8

const (
	writing durability = iota + 1
	synced
	deleting
)

type membership struct {
	index  uint64
	voters []string
}

// NewCluster returns a cluster of which nothing is known.
func NewCluster() *Cluster {
	return &Cluster{
		members: map[string]*log{}, terms: map[uint64]*term{}, known: map[position]*written{},
		decided: []position{{}}, responses: map[uint64]uint64{}, groups: map[groupName]uint64{},
		etags: map[string]*Etags{}, ranges: map[[2]string]*Ranges{},
	}
}

// Disk is what a process finds on its disk.
type Disk struct {
	Term uint64
	// Voted is the term of the newest vote, and Candidate whom it is for; zeros without one.
	Voted     uint64
	Candidate string
	Entries   []Entry
	// Index and SnapshotTerm are of the newest snapshot's end, and Voters the members
	// then.
	Index, SnapshotTerm uint64
	Voters              []string
}

// Committed is up to where the log is committed.
func (c *Cluster) Committed() uint64 { return uint64(len(c.decided) - 1) }

func (c *Cluster) term(t uint64) *term {
	if c.terms[t] == nil {
		c.terms[t] = &term{votes: map[string]string{}, ends: map[string]End[uint64]{}, have: map[string]uint64{}}
	}
	return c.terms[t]
}

// Start has a member's process begin with what is on its disk: all that was synced must
// be there, and nothing that was not written. A disk may be set back to an older copy while
// all other members are there and have seen more of it: its node must not vote, which is the
// rule of spec/members.pml.
func (c *Cluster) Start(member string, d Disk, setBack bool) error {
	l, known := c.members[member]
	if known && !setBack {
		if err := l.keeps(d); err != nil {
			return err
		}
	}
	found := &log{
		entries: map[uint64]slot{}, ends: d.SnapshotTerm, voted: d.Voted, candidate: d.Candidate, older: known && setBack,
	}
	found.Base, found.Applied = d.Index, 0
	found.Length, found.Term = d.Index, d.Term
	if d.Voters != nil {
		found.voters = []membership{{d.Index, d.Voters}}
	}
	for _, e := range d.Entries {
		found.put(e, synced)
		c.count(member, e.Term, e.Index, d.Term)
	}
	found.Sync()
	c.members[member] = found
	if err := c.foundVote(member, d); err != nil {
		return err
	}
	return c.commit(d.Term)
}

// foundVote counts a vote that reached the disk as the member crashed, before anybody was
// told: a candidate that asks again is told.
func (c *Cluster) foundVote(member string, d Disk) error {
	if _, counted := c.term(d.Voted).votes[member]; counted || d.Candidate == "" || c.members[member].older {
		return nil
	}
	return c.Vote(member, d.Voted, d.Candidate)
}

// Trust has a member vote with an older copy of its disk: an operator trusts it.
func (c *Cluster) Trust(member string) { c.members[member].older = false }

// count notes that a member has an entry on disk. Its leader may count on entries of the
// term in which the member is: also if the member crashed before it said so.
func (c *Cluster) count(member string, term, index, now uint64) {
	if term == now {
		t := c.term(term)
		t.have[member] = max(t.have[member], index)
	}
}

// keeps reports what a disk must have, or must not have. Term 1 without an entry is what a
// founder has written that crashed in the middle: nobody votes in it.
func (l *log) keeps(d Disk) error {
	if d.Term < l.Term && (l.Term > 1 || l.Length > 0) {
		return fmt.Errorf("forgot term %d, and is in %d", l.Term, d.Term)
	}
	if d.Voted < l.voted || d.Voted == l.voted && d.Candidate != l.candidate {
		return fmt.Errorf("forgot its vote in term %d", l.voted)
	}
	if d.Index < l.Base {
		return fmt.Errorf("forgot its snapshot of %d, and has one of %d", l.Base, d.Index)
	}
	have := make(map[uint64]uint64, len(d.Entries))
	for _, e := range d.Entries {
		have[e.Index] = e.Term
		if s := l.entries[e.Index]; s.term != e.Term && e.Index > d.Index {
			return fmt.Errorf("has entry %d of term %d on disk, and never wrote it", e.Index, e.Term)
		}
	}
	for index, s := range l.entries {
		if s.state == synced && index > d.Index && have[index] != s.term {
			return fmt.Errorf("lost entry %d of term %d, which was on disk", index, s.term)
		}
	}
	return nil
}

// put appends an entry.
func (l *log) put(e Entry, state durability) {
	l.entries[e.Index] = slot{e.Term, state}
	l.Length = max(l.Length, e.Index)
	l.wrote = End[uint64]{e.Term, e.Index}
	if e.Kind == Voters {
		l.voters = append(l.voters, membership{e.Index, e.Voters})
	}
}

// end is where the log ends: with its last entry, or with the snapshot.
func (l *log) end() End[uint64] {
	if s, have := l.entries[l.Length]; have {
		return End[uint64]{s.term, l.Length}
	}
	return End[uint64]{l.ends, l.Length}
}

// ownEnd is what a voter takes for the end of its log. The library goes by the last entry
// that it wrote, also if a snapshot was installed since and the entry deleted, unless the
// snapshot ends behind it (cluster/raftguard/README.md).
func (l *log) ownEnd() End[uint64] {
	if l.wrote.Length >= l.Base {
		return l.wrote
	}
	return l.end()
}

// at is the term of an entry; 0 if it is not known any more.
func (l *log) at(index uint64) uint64 {
	if index == l.Base && index > 0 {
		return l.ends
	}
	return l.entries[index].term
}

// Hear has a member write its term. A founder that crashed before it wrote its first
// entry takes the term of that back.
func (c *Cluster) Hear(member string, to uint64) error {
	l := c.members[member]
	if to == 0 && l.Term == 1 && l.Length == 0 {
		l.Term = 0
	}
	if err := l.Hear(to); err != nil {
		return err
	}
	if ends := c.term(to).ends; ends[member] == (End[uint64]{}) {
		ends[member] = l.end()
	}
	return nil
}

// Vote has a member write its vote.
func (c *Cluster) Vote(member string, in uint64, candidate string) error {
	l, t := c.members[member], c.term(in)
	switch before, voted := t.votes[member]; {
	case l.older:
		return errors.New("votes with an older copy of its disk")
	case in < l.Term:
		return fmt.Errorf("votes in term %d, and is in %d", in, l.Term)
	case voted && before != candidate:
		return errors.New("votes twice in a term")
	}
	own := l.ownEnd()
	if end, known := t.ends[candidate]; known && !MayVote(end, own) {
		return fmt.Errorf("votes for a log that ends with entry %d of term %d, and its own with %d of %d", end.Length,
			end.Term, own.Length, own.Term)
	}
	t.votes[member] = candidate
	l.voted, l.candidate = in, candidate
	return nil
}

// lead has the member lead that makes the first entry of a term. What leaders of earlier
// terms have committed is in its log. What one of a later term has need not be: the vote of
// a candidate for itself may reach its disk after the voters went on.
func (c *Cluster) lead(member string, in uint64) error {
	l, t := c.members[member], c.term(in)
	voters := l.config(0)
	votes := 0
	for _, v := range voters {
		if t.votes[v] == member {
			votes++
		}
	}
	if !Majority(votes, len(voters)) {
		return fmt.Errorf("leads term %d with %d of %d votes", in, votes, len(voters))
	}
	if end := c.committedBefore(in); end > l.Length || end > l.Base && l.at(end) != c.decided[end].term {
		return fmt.Errorf("leads term %d without entry %d of term %d, which is committed", in, end, c.decided[end].term)
	}
	t.leader = member
	l.Lead()
	return nil
}

// committedBefore is up to where leaders of terms before this one have committed the log.
func (c *Cluster) committedBefore(in uint64) uint64 {
	var end uint64
	for number, t := range c.terms {
		if number < in {
			end = max(end, t.committed)
		}
	}
	return end
}

// config returns the voters of the newest configuration, or of one before it.
func (l *log) config(before int) []string {
	if i := len(l.voters) - 1 - before; i >= 0 {
		return l.voters[i].voters
	}
	return nil
}

// Write has a member begin to write entries at the end of its log.
func (c *Cluster) Write(member string, entries []Entry) error {
	l := c.members[member]
	for _, e := range entries {
		if e.Index != l.Length+1 {
			return fmt.Errorf("writes entry %d behind %d", e.Index, l.Length)
		}
		if err := c.make(member, e); err != nil {
			return err
		}
		l.put(e, writing)
	}
	return nil
}

// make compares an entry with the same of other members. Its leader has it first.
func (c *Cluster) make(member string, e Entry) error {
	l, at := c.members[member], position{e.Index, e.Term}
	before, known := l.at(e.Index-1), c.known[at]
	if known != nil {
		switch {
		case known.Digest != e.Digest:
			return fmt.Errorf("writes another entry %d of term %d than its leader", e.Index, e.Term)
		case before != 0 && known.before != 0 && before != known.before:
			return fmt.Errorf("writes entry %d of term %d behind one of term %d, its leader behind one of %d", e.Index, e.Term, before, known.before)
		}
		return nil
	}
	if e.Term > 1 { // The first entry is there before there is a leader.
		t := c.term(e.Term)
		if t.leader == "" {
			if err := c.lead(member, e.Term); err != nil {
				return err
			}
		}
		if t.leader != member {
			return fmt.Errorf("makes entry %d of term %d, which another leads", e.Index, e.Term)
		}
	}
	c.known[at] = &written{e, before}
	return nil
}

// Sync has what a member wrote on its disk, up to an entry. That may commit entries.
func (c *Cluster) Sync(member string, last uint64) error {
	l := c.members[member]
	for index := last; ; index-- {
		s, have := l.entries[index]
		if !have || s.state != writing {
			break
		}
		l.entries[index] = slot{s.term, synced}
		c.count(member, s.term, index, l.Term)
	}
	l.Synced = max(l.Synced, last)
	return c.commit(l.Term)
}

// commit commits what a majority has of a leader's term. A leader that changes the
// members counts by those before until it has written the change.
func (c *Cluster) commit(in uint64) error {
	t := c.term(in)
	l := c.members[t.leader]
	if l == nil {
		return nil
	}
	n := max(t.counted(in, l.config(0)), t.counted(in, l.config(1)))
	if n <= c.Committed() {
		return nil
	}
	var found []position
	for at := (position{n, in}); at.index > c.Committed(); {
		found = append(found, at)
		e := c.known[at]
		if e == nil {
			return fmt.Errorf("entry %d of term %d is committed, and nobody has made it", at.index, at.term)
		}
		at = position{at.index - 1, e.before}
		if at.index == c.Committed() && at != c.decided[at.index] {
			return fmt.Errorf("entry %d of term %d is committed in place of that of term %d", at.index, at.term, c.decided[at.index].term)
		}
	}
	slices.Reverse(found)
	c.decided = append(c.decided, found...)
	t.committed = n
	return nil
}

// counted returns up to where a majority of voters has entries of the term.
func (t *term) counted(in uint64, voters []string) uint64 {
	have := make([]uint64, 0, len(voters))
	for _, v := range voters {
		have = append(have, t.have[v])
	}
	slices.Sort(have)
	for i, n := range slices.Backward(have) {
		if MayCommit(in, in, len(have)-i, len(voters)) {
			return n
		}
	}
	return 0
}
