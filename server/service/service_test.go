package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/test/fsmtest"
)

// TestOutcomes: the error for a proposal without a result depends on its outcome, and on whether
// the same call again is safe.
func TestOutcomes(t *testing.T) {
	cause := errors.New("secret")
	tests := []struct {
		err    error
		code   apierror.Code
		reason string
		retry  bool
	}{
		{outcome.NewNotApplied(outcome.NoQuorum, cause), apierror.CodeUnavailable, apierror.ReasonNoQuorum, true},
		{outcome.NewNotApplied(outcome.NotLeader, cause), apierror.CodeUnavailable, apierror.ReasonNoQuorum, true},
		{outcome.NewNotApplied(outcome.Deadline, cause), apierror.CodeUnavailable, apierror.ReasonNoQuorum, true},
		{outcome.NewNotApplied(outcome.Starting, cause), apierror.CodeUnavailable, apierror.ReasonStarting, true},
		{outcome.NewNotApplied(outcome.Stopping, cause), apierror.CodeUnavailable, apierror.ReasonStopping, true},
		{outcome.NewNotApplied(outcome.Overloaded, cause), apierror.CodeResourceExhausted, apierror.ReasonOverloaded, true},
		{outcome.NewNotApplied(outcome.TooLarge, cause), apierror.CodeResourceExhausted, apierror.ReasonQuota, false},
		{outcome.NewNotApplied(outcome.StorageFull, cause), apierror.CodeResourceExhausted, apierror.ReasonStorageFull, false},
		{outcome.NewUnknown(outcome.NoQuorum, cause), apierror.CodeAborted, apierror.ReasonOutcomeUnknown, false},
		{outcome.NewUnknown(outcome.StorageFull, cause), apierror.CodeAborted, apierror.ReasonOutcomeUnknown, false},
		{cause, apierror.CodeAborted, apierror.ReasonOutcomeUnknown, false},
	}
	for _, tt := range tests {
		t.Run(tt.err.Error(), func(t *testing.T) {
			w := newWorld(t)
			n := newNode(t, w, nil)
			w.Set(func(f *fsmtest.Faults) { f.Fail = tt.err })
			err := callNext(&idnodev1.NextIdentityRequest{Name: "u"})(n)
			wantError(t, err, tt.code, tt.reason, "")
			var e *apierror.Error
			if errors.As(err, &e); (e.RetryAfter > 0) != tt.retry || !errors.Is(err, tt.err) {
				t.Errorf("retry after %s, cause %v", e.RetryAfter, e.Err)
			}
			if tt.reason != apierror.ReasonOutcomeUnknown {
				return
			}
			for _, safe := range []func(node) error{
				callNext(&idnodev1.NextIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{Id: "x"}}),
				callRange(&idnodev1.NextRangeRequest{Tag: "u"}),
			} {
				wantError(t, safe(n), apierror.CodeUnavailable, apierror.ReasonOutcomeUnknown, "")
			}
		})
	}
}

// TestReadsWithoutQuorum: a linearizable read is refused, a stale one is not.
func TestReadsWithoutQuorum(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	for _, failure := range []error{
		outcome.NewNotApplied(outcome.NoQuorum, nil), outcome.NewUnknown(outcome.LeadershipLost, nil),
		outcome.NewUnknown(outcome.Deadline, nil), errors.New("odd"),
	} {
		w.Set(func(f *fsmtest.Faults) { f.Unreadable = failure })
		for name, list := range listings(n) {
			_, _, _, err := list(&idnodev1.ListIdentitiesRequest{})
			wantError(t, err, apierror.CodeUnavailable, apierror.ReasonNoQuorum, "")
			if _, _, _, err := list(&idnodev1.ListIdentitiesRequest{Consistency: stale}); err != nil {
				t.Errorf("stale %s: %v", name, err)
			}
		}
		_, err := n.GetIdentity(context.Background(), &idnodev1.GetIdentityRequest{Name: "u"})
		wantError(t, err, apierror.CodeUnavailable, apierror.ReasonNoQuorum, "")
		_, err = n.ListSettings(context.Background(), &idnodev1.ListSettingsRequest{})
		wantError(t, err, apierror.CodeUnavailable, apierror.ReasonNoQuorum, "")
		_, err = n.ListMembers(context.Background(), &idnodev1.ListMembersRequest{})
		wantError(t, err, apierror.CodeUnavailable, apierror.ReasonNoQuorum, "")
	}
}

// TestInFlight: one call more than allowed is refused at once, and the place of a
// call that has ended is free again.
func TestInFlight(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, func(c *Config) { c.MaxInFlight = 2 })
	block := make(chan struct{})
	w.Set(func(f *fsmtest.Faults) { f.Gate = block })
	ended := make(chan error, 2)
	for range 2 {
		go func() { ended <- callNext(&idnodev1.NextIdentityRequest{Name: "u"})(n) }()
	}
	await(t, func() bool { return n.InFlight() == 2 })
	_, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{})
	wantError(t, err, apierror.CodeResourceExhausted, apierror.ReasonOverloaded, "")
	if n.Status().Term != 0 {
		t.Error("the status has a term from nowhere")
	}
	close(block)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if _, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{}); err != nil {
		t.Errorf("after the calls ended: %v", err)
	}
}

// TestCallGivenUp: a caller whose operation the log did not answer in time learns
// that the outcome is unknown.
func TestCallGivenUp(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	w.Set(func(f *fsmtest.Faults) { f.Fail, f.Lost = outcome.NewUnknown(outcome.Deadline, nil), true })
	wantError(t, callNext(&idnodev1.NextIdentityRequest{Name: "u"})(n), apierror.CodeAborted, apierror.ReasonOutcomeUnknown, "")
	_, err := n.NextRange(context.Background(), &idnodev1.NextRangeRequest{Tag: "u"})
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonOutcomeUnknown, "")
}

// await polls until the condition holds.
func await(t *testing.T, condition func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); !condition(); {
		if time.Now().After(end) {
			t.Fatal("waited in vain")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestEveryRefusalIsTranslated: a reason added to the log must be added here.
func TestEveryRefusalIsTranslated(t *testing.T) {
	for number, name := range raftlogv1.RefusalReason_name {
		if _, ok := refusalKinds[raftlogv1.RefusalReason(number)]; ok != (number != 0) {
			t.Errorf("%s: %t", name, ok)
		}
	}
}

// TestReasonsOfANewerLeader: nothing happened, and what it says is passed on.
func TestReasonsOfANewerLeader(t *testing.T) {
	const detail = "the moon is full"
	e := refusalError(&raftlogv1.Refusal{Reason: 999, Detail: detail})
	if e.Code != apierror.CodeFailedPrecondition || e.Reason != apierror.ReasonFormatUnsupported || e.Message != detail {
		t.Errorf("a refusal becomes %+v", e)
	}
	for message, cause := range map[string]error{detail: errors.New(detail), "not applied: reason 99": nil} {
		e = proposalError(outcome.NewNotApplied(99, cause), false)
		if e.Code != apierror.CodeUnavailable || e.Reason != apierror.ReasonNoQuorum || e.Message != message+"; nothing happened" {
			t.Errorf("an outcome becomes %+v", e)
		}
	}
}

func TestClusterCalls(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	ctx := context.Background()
	if res, err := n.RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: "B"}); err != nil || res.LogIndex != 7 ||
		n.cluster.asked != "remove B" {
		t.Errorf("%v %v, asked %q", res, err, n.cluster.asked)
	}
	if _, err := n.RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: "B", Force: true}); err != nil ||
		n.cluster.asked != "remove B by force" {
		t.Errorf("%v, asked %q", err, n.cluster.asked)
	}
	for _, watcher := range []bool{true, false} {
		want := fmt.Sprintf("remove B by force, a watcher: %t", watcher)
		res, err := n.SetWatcher(ctx, &idnodev1.SetWatcherRequest{Tag: "B", Watcher: proto.Bool(watcher), Force: true})
		if err != nil || res.LogIndex != 7 || n.cluster.asked != want {
			t.Errorf("%v %v, asked %q", res, err, n.cluster.asked)
		}
	}
	if res, err := n.TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{}); err != nil || res.LeaderTag != "B" ||
		n.cluster.asked != "transfer " {
		t.Errorf("%v %v, asked %q", res, err, n.cluster.asked)
	}
	n.cluster.asked = ""
	_, err := n.RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: "RAFT"})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidNodeTag, "tag")
	_, err = n.SetWatcher(ctx, &idnodev1.SetWatcherRequest{Watcher: proto.Bool(false)})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidNodeTag, "tag")
	_, err = n.SetWatcher(ctx, &idnodev1.SetWatcherRequest{Tag: "B"})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidRequest, "watcher")
	_, err = n.TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{Tag: "ABCDE"})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidNodeTag, "tag")
	if n.cluster.asked != "" {
		t.Errorf("a refused call was made: %s", n.cluster.asked)
	}
	n.cluster.err = &op.RefusedError{Refusal: &raftlogv1.Refusal{
		Reason: raftlogv1.RefusalReason_REFUSAL_REASON_LAST_VOTER,
		Detail: "the last voter",
	}}
	_, err = n.RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: "A"})
	wantError(t, err, apierror.CodeFailedPrecondition, apierror.ReasonLastVoter, "")
	n.cluster.err = outcome.NewNotApplied(outcome.NoQuorum, nil)
	_, err = n.TransferLeadership(ctx, &idnodev1.TransferLeadershipRequest{Tag: "A"})
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonNoQuorum, "")
}

func TestStatusAndMembers(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, func(c *Config) { c.Version = "v1" })
	n.cluster.status.LeaderTag, n.cluster.status.HasQuorum = "A", true
	condition := Condition{Answer: &peerv1.PingResponse{AppliedIndex: 7, StorageFull: true, Version: "v1"}}
	n.cluster.status.Conditions = map[string]Condition{"A": condition, "B": {Answer: &peerv1.PingResponse{AppliedIndex: 9}}}
	status := n.Status()
	index, hash := w.State.Hash()
	if status.StateIndex != index || status.StateHash != hash || status.Version != "v1" || !status.HasQuorum {
		t.Errorf("status %+v", status)
	}
	self := Member{
		Tag: "A", ID: n.cluster.status.SelfID, GRPCAddress: "a:7400", RaftAddress: "a:7401",
		Role: idnodev1.Role_ROLE_LEADER, Votes: true, LogFormat: 1, Condition: condition, Behind: 2,
	}
	same(t, status.Self, self)
	same(t, status.Members, []Member{self})
	res, err := n.ListMembers(context.Background(), &idnodev1.ListMembersRequest{PageSize: 1})
	if err != nil || res.NextPageToken != "" {
		t.Fatalf("%+v %v", res, err)
	}
	same(t, res.Members, []*idnodev1.Member{self.message()})
}

func TestSettings(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	ctx := context.Background()
	res, err := n.UpdateSetting(ctx, &idnodev1.UpdateSettingRequest{Key: "max-identities", Value: proto.Int64(1)})
	if err != nil || res.Setting.Value != 1 || res.Setting.DefaultValue == 1 || res.LogIndex == 0 {
		t.Fatalf("%+v %v", res, err)
	}
	all, err := n.ListSettings(ctx, &idnodev1.ListSettingsRequest{})
	if err != nil || len(all.Settings) < 2 {
		t.Fatalf("%+v %v", all, err)
	}
	for i := 1; i < len(all.Settings); i++ {
		if all.Settings[i-1].Key >= all.Settings[i].Key {
			t.Error("the settings are not in order of their keys")
		}
	}
	if err := callNext(&idnodev1.NextIdentityRequest{Name: "a"})(n); err != nil {
		t.Fatal(err)
	}
	err = callNext(&idnodev1.NextIdentityRequest{Name: "b"})(n)
	var e *apierror.Error
	if !errors.As(err, &e) || e.Reason != apierror.ReasonQuota || e.Code != apierror.CodeResourceExhausted {
		t.Errorf("beyond the limit: %v", err)
	}
	_, err = n.UpdateSetting(ctx, &idnodev1.UpdateSettingRequest{Key: "nonsense", Value: proto.Int64(1)})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidSetting, "key")
	if !strings.Contains(err.Error(), "only max-claims, max-databases, ") {
		t.Errorf("%v does not say which there are", err)
	}
	_, err = n.UpdateSetting(ctx, &idnodev1.UpdateSettingRequest{Key: "max-identities"})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidSetting, "value")
	_, err = n.UpdateSetting(ctx, &idnodev1.UpdateSettingRequest{Key: "max-identities", Value: proto.Int64(-1)})
	wantError(t, err, apierror.CodeInvalidArgument, apierror.ReasonInvalidSetting, "value")
}
