package peers

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/cluster/member"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// slowTable is a table in which B is removed while it is read for the first time.
type slowTable struct {
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
	r := &Table{replicated: table.Members, record: member.NewNodeRecord(&member.Record{}, member.NodeRecordConfig{})}
	quick := make(chan struct{})
	table.meddle = func() {
		go func() {
			defer close(quick)
			r.Refresh()
		}()
		select {
		case <-quick:
		case <-time.After(50 * time.Millisecond): // It waits for this one.
		}
	}
	r.Refresh()
	<-quick
	if m, ok := r.ByID([]byte("b")); !ok || !m.GetRemoved() {
		t.Errorf("the removed member is %v", m)
	}
}

// TestCombine: members beyond the replicated table are added to it; they neither replace its
// records, nor bring a removed member back, nor give a tag a second owner.
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
		{
			"nothing replicated yet", nil,
			members{member("2", "B", "b"), member("1", "A", "a")},
			members{member("1", "A", "a"), member("2", "B", "b")},
		},
		{"nothing known beyond", members{member("1", "A", "a")}, nil, members{member("1", "A", "a")}},
		{"the table's address counts", members{member("1", "A", "new")}, members{member("1", "A", "old")}, members{member("1", "A", "new")}},
		{"one more", members{member("1", "A", "a")}, members{member("2", "B", "b")}, members{member("1", "A", "a"), member("2", "B", "b")}},
		{"removed already", members{member("1", "A", "a")}, members{removed("1", "A", "a")}, members{removed("1", "A", "a")}},
		{"removed in the table", members{removed("1", "A", "a")}, members{member("1", "A", "a")}, members{removed("1", "A", "a")}},
		{"a tag that is taken", members{member("1", "A", "a")}, members{member("9", "A", "x")}, members{member("1", "A", "a")}},
		{
			"order of tags",
			members{member("3", "ZA", "")},
			members{member("2", "Z", ""), member("1", "B", "")},
			members{member("1", "B", ""), member("2", "Z", ""), member("3", "ZA", "")},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, combine(c.replicated, c.known), protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAMemberFoundElsewhere is dialled there, until the cluster has agreed on its addresses.
func TestAMemberFoundElsewhere(t *testing.T) {
	table := &fixedTable{address: "old"}
	r := NewTable(table.Members, member.NewNodeRecord(&member.Record{}, member.NodeRecordConfig{}))
	want := func(dialled string, moved bool) {
		t.Helper()
		m, _ := r.ByID([]byte("b"))
		if m.GetRaftAddress() != dialled || r.Moved([]byte("b")) != moved {
			t.Errorf("it is dialled at %s, moved %v; want %s, %v", m.GetRaftAddress(), r.Moved([]byte("b")), dialled, moved)
		}
	}
	registered := r.Refresh().Registered[0]
	for _, news := range []bool{true, false} {
		if got := r.found(registered, member.Addresses{Raft: "new"}); got != news {
			t.Errorf("found is news: %v", got)
		}
		want("new", true)
	}
	if got := r.Refresh().Registered[0].GetRaftAddress(); got != "old" {
		t.Errorf("it is registered at %s", got)
	}
	if !r.found(registered, member.Addresses{Raft: "old"}) {
		t.Error("that it is back is no news")
	}
	want("old", false)
	r.found(registered, member.Addresses{Raft: "new"})
	table.address = "agreed"
	r.Refresh()
	want("agreed", false)
}

// fixedTable has one member.
type fixedTable struct {
	address string
}

func (f *fixedTable) Members() []*raftlogv1.Member {
	return []*raftlogv1.Member{{Id: []byte("b"), Tag: "B", RaftAddress: f.address}}
}

// greeters answer Hello by address.
type greeters struct {
	Caller
	replies map[string]*peerv1.HelloResponse
}

func (g greeters) Hello(_ context.Context, _, address string, _ *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	if reply := g.replies[address]; reply != nil {
		return reply, nil
	}
	return nil, errors.New("nobody is there")
}

// TestWhatIsEvidenceOfAnAddress: a member that answers at its registered address is there, whatever
// the list has; else an address on the list counts, if the member, and no other node, answers
// there.
func TestWhatIsEvidenceOfAnAddress(t *testing.T) {
	own := bytes.Repeat([]byte{1}, member.ClusterIDSize)
	is := func(cluster []byte, id string) *peerv1.HelloResponse {
		return &peerv1.HelloResponse{
			ClusterId: cluster,
			Self:      &raftlogv1.Member{Id: []byte(id), Tag: strings.ToUpper(id), RaftAddress: "raft of " + id},
		}
	}
	b := is(own, "b")
	for _, tt := range []struct {
		name    string
		listed  []member.Listed
		replies map[string]*peerv1.HelloResponse
		want    string // The gRPC address; else what the error says.
	}{
		{"as registered", nil, map[string]*peerv1.HelloResponse{"old": b}, "old"},
		{
			"where it is registered and on the list",
			[]member.Listed{{Tag: "B", Address: "new"}},
			map[string]*peerv1.HelloResponse{"old": b, "new": b},
			"old",
		},
		{
			"on the list alone",
			[]member.Listed{{Tag: "B", Address: "new"}},
			map[string]*peerv1.HelloResponse{"old": is(own, "c"), "new": b},
			"new",
		},
		{
			"among those to join through",
			[]member.Listed{{Address: "other"}, {Address: "new"}},
			map[string]*peerv1.HelloResponse{"other": is(own, "c"), "new": b},
			"new",
		},
		{
			"where the list has another",
			[]member.Listed{{Tag: "C", Address: "new"}},
			map[string]*peerv1.HelloResponse{"new": b},
			"at old, as registered (",
		},
		{
			"another is there",
			[]member.Listed{{Tag: "B", Address: "new"}},
			map[string]*peerv1.HelloResponse{"new": is(own, "c")},
			"at new, on the list (node C answers)",
		},
		{
			"of another cluster",
			[]member.Listed{{Tag: "B", Address: "new"}},
			map[string]*peerv1.HelloResponse{"new": is([]byte{2}, "b")},
			"at new, on the list (a node of cluster 02 answers)",
		},
		{
			"of no cluster yet",
			[]member.Listed{{Tag: "B", Address: "new"}},
			map[string]*peerv1.HelloResponse{"new": is(nil, "b")},
			"at new, on the list (a node without a cluster answers)",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := NewLocator(Config{
				Listed: tt.listed, Peers: greeters{replies: tt.replies},
				Record: member.NewNodeRecord(&member.Record{ClusterID: own}, member.NodeRecordConfig{}),
			}, nil)
			at, err := l.ask(t.Context(), &raftlogv1.Member{Id: []byte("b"), Tag: "B", GrpcAddress: "old", RaftAddress: "raft of b, once"})
			if err != nil && !strings.Contains(err.Error(), tt.want) || err == nil && at != (member.Addresses{GRPC: tt.want, Raft: "raft of b"}) {
				t.Errorf("%v %v, want %s", at, err, tt.want)
			}
		})
	}
}
