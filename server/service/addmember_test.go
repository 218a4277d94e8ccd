package service

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/test/fsmtest"
)

// found proves that a newcomer is at its address.
func found() error { return nil }

// asked is how a node was added.
type asked struct {
	times     int
	hash      []byte
	principal *string
}

// join lets node D ask for membership as a principal.
func (n node) join(principal, token string) (asked, error) {
	var a asked
	newcomer := &raftlogv1.Member{Id: []byte("node-d----------"), Tag: "D"}
	err := n.AddMember(as(principal), &peerv1.JoinRequest{Member: newcomer, Token: token}, found,
		func(hash []byte, author *string) (*raftlogv1.Member, error) {
			a = asked{a.times + 1, hash, author}
			return &raftlogv1.Member{Id: []byte("node-d----------"), Tag: "D"}, nil
		})
	return a, err
}

// TestATokenIsNowhereButWithItsOwner: the state gets its hash, and the audit log the
// beginning of that.
func TestATokenIsNowhereButWithItsOwner(t *testing.T) {
	n, a := newAuditedNode(t)
	before := time.Now()
	res, err := n.CreateJoinToken(as("ops"), &idnodev1.CreateJoinTokenRequest{Tag: "D", ValidFor: durationpb.New(time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(res.Token))
	if len(res.Token) < 26 || n.world.State.CheckJoinToken(hash[:], "D") != nil ||
		n.world.State.CheckJoinToken([]byte(res.Token), "D") == nil {
		t.Errorf("%q is not the token of what the state knows", res.Token)
	}
	if expires := res.ExpiresAt.AsTime(); expires.Before(before.Add(time.Minute)) || expires.After(time.Now().Add(time.Minute)) {
		t.Errorf("it expires at %s", expires)
	}
	got := a.take(t)
	if len(got) != 2 || got[0].Event != audit.EventJoinToken || got[0].Name != "D" || got[1].Outcome != audit.OutcomeDone ||
		got[1].Index != res.LogIndex {
		t.Errorf("%+v", got)
	}
	if record := got[1].After.(recordedToken); strings.Contains(record.Token, res.Token) || record.Token != shownToken(hash[:]) {
		t.Errorf("%+v", record)
	}
	taken, err := n.join("ops", res.Token)
	if err != nil || string(taken.hash) != string(hash[:]) {
		t.Errorf("%+v, %v", taken, err)
	}
	if added := a.take(t); len(added) != 2 || added[0].Event != audit.EventAddMember ||
		added[0].After.(recordedToken).Token != got[1].After.(recordedToken).Token {
		t.Errorf("%+v", added)
	}
}

// TestWhoHasNeitherTokenNorRightIsNotAdded, and is recorded as denied alone.
func TestWhoHasNeitherTokenNorRightIsNotAdded(t *testing.T) {
	n, a := newAuditedNode(t)
	n.setRoles(t, everything(), shopWithout(rights.Cluster))
	a.take(t)
	for _, who := range []string{"shop", "", "D"} {
		for _, token := range []string{"", "guessed"} {
			var r interface{ Refused() *raftlogv1.Refusal }
			taken, err := n.join(who, token)
			if taken.times > 0 || !errors.As(err, &r) || r.Refused().GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_PERMISSION_DENIED {
				t.Errorf("%q with token %q: %v", who, token, err)
			}
		}
	}
	a.wantDenials(t, 6)
	if taken, err := n.join("ops", ""); err != nil || taken.principal == nil || *taken.principal != "ops" {
		t.Errorf("with the right: %+v, %v", taken, err)
	}
}

// TestNoEntryForANodeThatCannotComeBack: a removed node, and a caller with another node's id, are
// refused without an entry in the log, however often they ask. Every holder of a node's certificate
// can ask.
func TestNoEntryForANodeThatCannotComeBack(t *testing.T) {
	var lines bytes.Buffer
	n := newNode(t, newWorld(t), func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&lines, nil)) })
	for _, tag := range []string{"D", "E"} {
		n.world.Must(op.Envelope{},
			&raftlogv1.MemberAdd{Member: &raftlogv1.Member{Id: fsmtest.NodeID(tag), Tag: tag, GrpcAddress: "h:1", RaftAddress: "h:2"}})
	}
	n.world.Must(op.Envelope{}, &raftlogv1.MemberRemove{Tag: "E"})
	for _, tt := range []struct {
		id, tag string
		want    raftlogv1.RefusalReason
	}{
		{"E", "E", raftlogv1.RefusalReason_REFUSAL_REASON_NOT_A_MEMBER},
		{"D", "F", raftlogv1.RefusalReason_REFUSAL_REASON_TAG_INVALID},
		{"D", "D", raftlogv1.RefusalReason_REFUSAL_REASON_UNSPECIFIED},
		{"D", "", raftlogv1.RefusalReason_REFUSAL_REASON_UNSPECIFIED},
	} {
		for range 100 {
			taken := false
			err := n.AddMember(as("dns:"+tt.tag), &peerv1.JoinRequest{Member: &raftlogv1.Member{Id: fsmtest.NodeID(tt.id), Tag: tt.tag}}, found,
				func([]byte, *string) (*raftlogv1.Member, error) {
					taken = true
					return nil, nil
				})
			if accepted := tt.want == 0; taken != accepted || (err == nil) != accepted || op.RefusalOf(err).GetReason() != tt.want {
				t.Fatalf("%s as %q: taken %v, %v", tt.id, tt.tag, taken, err)
			}
		}
	}
	if n := strings.Count(lines.String(), "asks to join is refused"); n == 0 || n > 20 {
		t.Errorf("200 refused nodes are %d lines in the log", n)
	}
}

// TestATokenThatLetsNobodyIn: one whose time is over, or that is for another node, is
// refused at the door, in the state's own words, and recorded as denied alone.
func TestATokenThatLetsNobodyIn(t *testing.T) {
	n, a := newAuditedNode(t)
	other, err := n.CreateJoinToken(as("ops"), &idnodev1.CreateJoinTokenRequest{Tag: "E", ValidFor: durationpb.New(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	over := sha256.Sum256([]byte("over"))
	if _, err := n.roles.propose(as("ops"), op.Envelope{}, &raftlogv1.JoinTokenCreate{TokenHash: over[:], ValidNanos: 1}, false); err != nil {
		t.Fatal(err)
	}
	n.world.Advance(time.Second) // The log's clock decides. That of this node is years ahead.
	if _, err := n.NextIdentity(as("ops"), &idnodev1.NextIdentityRequest{Name: "later"}); err != nil {
		t.Fatal(err)
	}
	a.take(t)
	for token, want := range map[string]string{"over": "the token is no longer valid", other.Token: "the token is for node E"} {
		var r interface{ Refused() *raftlogv1.Refusal }
		taken, err := n.join("D", token)
		if taken.times > 0 || !errors.As(err, &r) || r.Refused().GetDetail() != want {
			t.Errorf("%s: %+v, %v", want, taken, err)
		}
	}
	a.wantDenials(t, 2)
}

// TestANodeThatIsBehindRefusesNobodyForGood: a refusal ends the node that asks, so the asked node
// first catches up with the cluster.
func TestANodeThatIsBehindRefusesNobodyForGood(t *testing.T) {
	noCluster := shopWithout(rights.Cluster)
	for name, tt := range map[string]struct {
		principal, token string
		// behind makes the changes that this node has not applied yet.
		behind func(*testing.T, node)
	}{
		"the node was let in, by a token that is used up": {"D", "used", func(_ *testing.T, n node) {
			d := &raftlogv1.Member{Id: []byte("node-d----------"), Tag: "D", GrpcAddress: "d:1", RaftAddress: "d:2"}
			who := "ops"
			n.world.Must(op.Envelope{Principal: &who}, &raftlogv1.MemberAdd{Member: d})
		}},
		"roles give it the right": {"shop", "", func(t *testing.T, n node) {
			n.setRoles(t, everything(), rights.Role{Name: "shop", Principals: []string{"shop"}, Grants: everything().Grants})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			n, a := newAuditedNode(t)
			n.setRoles(t, everything(), noCluster)
			a.take(t)
			n.world.Set(func(f *fsmtest.Faults) { f.Unreadable = outcome.NewNotApplied(outcome.NoQuorum, nil) })
			var refused interface{ Refused() *raftlogv1.Refusal }
			if taken, err := n.join(tt.principal, tt.token); err == nil || errors.As(err, &refused) || taken.times > 0 {
				t.Errorf("without a quorum: %+v, %v", taken, err)
			}
			n.world.Set(func(f *fsmtest.Faults) {
				f.Unreadable = nil
				f.CatchUp = sync.OnceFunc(func() { tt.behind(t, n) })
			})
			if taken, err := n.join(tt.principal, tt.token); err != nil || taken.times != 1 {
				t.Errorf("%+v, %v", taken, err)
			}
		})
	}
}

// TestARefusalOfTheStateIsRecordedAsOne, and passed on.
func TestARefusalOfTheStateIsRecordedAsOne(t *testing.T) {
	n, a := newAuditedNode(t)
	refusal := &op.RefusedError{Refusal: &raftlogv1.Refusal{Reason: raftlogv1.RefusalReason_REFUSAL_REASON_TAG_TAKEN}}
	newcomer := &peerv1.JoinRequest{Member: &raftlogv1.Member{Tag: "D"}}
	err := n.AddMember(as("ops"), newcomer, found, func([]byte, *string) (*raftlogv1.Member, error) { return nil, refusal })
	if !errors.Is(err, refusal) {
		t.Errorf("%v", err)
	}
	if got := a.take(t); len(got) != 2 || got[1].Outcome != audit.OutcomeRefused {
		t.Errorf("%+v", got)
	}
}

// TestAJoinFromElsewhereWritesNothing: at the announced address nobody answers as this node. The
// address is checked only for nodes that may join, and not for members.
func TestAJoinFromElsewhereWritesNothing(t *testing.T) {
	n, a := newAuditedNode(t)
	n.world.Must(op.Envelope{},
		&raftlogv1.MemberAdd{Member: &raftlogv1.Member{Id: fsmtest.NodeID("D"), Tag: "D", GrpcAddress: "h:1", RaftAddress: "h:2"}})
	n.setRoles(t, everything(), shopWithout(rights.Cluster))
	a.take(t)
	elsewhere := errors.New("another node is there")
	for _, tt := range []struct {
		principal, tag string
		looked, added  bool
	}{
		{principal: "shop", tag: "E"},
		{principal: "ops", tag: "E", looked: true},
		{principal: "ops", tag: "D"}, // It is another's.
		{principal: "shop", tag: "D", added: true},
	} {
		looked, added := false, false
		newcomer := &raftlogv1.Member{Id: []byte("another-node----"), Tag: tt.tag}
		if tt.added {
			newcomer.Id = fsmtest.NodeID(tt.tag)
		}
		err := n.AddMember(as(tt.principal), &peerv1.JoinRequest{Member: newcomer},
			func() error { looked = true; return elsewhere },
			func([]byte, *string) (*raftlogv1.Member, error) { added = true; return nil, nil })
		if looked != tt.looked || added != tt.added || errors.Is(err, elsewhere) != tt.looked {
			t.Errorf("%+v: looked %v, added %v, %v", tt, looked, added, err)
		}
	}
	a.wantDenials(t, 1)
}

// TestJoinTokensAreBounded in time.
func TestJoinTokensAreBounded(t *testing.T) {
	n, _ := newAuditedNode(t)
	for _, bad := range []time.Duration{-1, time.Millisecond, 31 * 24 * time.Hour} {
		_, err := n.CreateJoinToken(as("ops"), &idnodev1.CreateJoinTokenRequest{ValidFor: durationpb.New(bad)})
		wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidRequest, "valid_for")
	}
	_, err := n.CreateJoinToken(as("ops"), &idnodev1.CreateJoinTokenRequest{Tag: "d"})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidNodeTag, "tag")
}
