package cluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/cluster/member"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// slowTable is a table in which B is removed while it is read for the first time.
type slowTable struct {
	Registry
	reads   int
	meddle  func()
	removed bool
}

func (s *slowTable) Members() []*raftlogv1.Member {
	read := []*raftlogv1.Member{{Id: []byte("b"), Tag: "B", Removed: s.removed}}
	if s.reads++; s.reads == 1 {
		s.removed = true
		s.meddle()
	}
	return read
}

// TestASlowReadOfTheTableBringsNobodyBack: once one reader has seen that a member is
// removed, and its connections are closed, no slower reader makes it a member again.
func TestASlowReadOfTheTableBringsNobodyBack(t *testing.T) {
	table := &slowTable{}
	r := &roster{registry: table, record: newNodeRecord(Config{}, &member.Record{}, nil)}
	quick := make(chan struct{})
	table.meddle = func() {
		go func() {
			defer close(quick)
			r.refresh()
		}()
		select {
		case <-quick:
		case <-time.After(50 * time.Millisecond): // It waits for this one.
		}
	}
	r.refresh()
	<-quick
	if m, ok := r.byID([]byte("b")); !ok || !m.GetRemoved() {
		t.Errorf("the removed member is %v", m)
	}
}

// TestCombine: what is known beyond the replicated table is added to it; it
// neither replaces what the table says, nor brings a removed member back, nor
// gives a tag a second owner.
func TestCombine(t *testing.T) {
	member := func(id, tag, address string) *raftlogv1.Member {
		return &raftlogv1.Member{Id: []byte(id), Tag: tag, RaftAddress: address, Voter: true}
	}
	removed := func(id, tag, address string) *raftlogv1.Member {
		return &raftlogv1.Member{Id: []byte(id), Tag: tag, RaftAddress: address, Removed: true}
	}
	type members = []*raftlogv1.Member
	cases := []struct {
		name                    string
		replicated, known, want members
	}{
		{"nothing replicated yet", nil, members{member("2", "B", "b"), member("1", "A", "a")}, members{member("1", "A", "a"), member("2", "B", "b")}},
		{"nothing known beyond", members{member("1", "A", "a")}, nil, members{member("1", "A", "a")}},
		{"the table's address counts", members{member("1", "A", "new")}, members{member("1", "A", "old")}, members{member("1", "A", "new")}},
		{"one more", members{member("1", "A", "a")}, members{member("2", "B", "b")}, members{member("1", "A", "a"), member("2", "B", "b")}},
		{"removed already", members{member("1", "A", "a")}, members{removed("1", "A", "a")}, members{removed("1", "A", "a")}},
		{"removed in the table", members{removed("1", "A", "a")}, members{member("1", "A", "a")}, members{removed("1", "A", "a")}},
		{"a tag that is taken", members{member("1", "A", "a")}, members{member("9", "A", "x")}, members{member("1", "A", "a")}},
		{"order of tags", members{member("3", "ZA", "")}, members{member("2", "Z", ""), member("1", "B", "")}, members{member("1", "B", ""), member("2", "Z", ""), member("3", "ZA", "")}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, combine(c.replicated, c.known), protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
