package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/outcome"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/test/fsmtest"
)

// auditor remembers records; after fail it takes none.
type auditor struct {
	records []audit.Record
	fail    error
}

func (a *auditor) Write(_ context.Context, r audit.Record) error {
	if a.fail == nil {
		a.records = append(a.records, r)
	}
	return a.fail
}

func (a *auditor) Tail(context.Context, int) ([]json.RawMessage, error) {
	return []json.RawMessage{json.RawMessage(`{"event":"roles.set"}`)}, a.fail
}

// take returns the records since its last call, and checks the fields that they share.
func (a *auditor) take(t *testing.T) []audit.Record {
	t.Helper()
	records := a.records
	a.records = nil
	for i, r := range records {
		if r.Principal != "ops" || r.Address != "192.0.2.1:9" || r.Node != "A" {
			t.Errorf("who, where from and where to: %+v", r)
		}
		records[i].Principal, records[i].Address, records[i].Node = "", "", ""
	}
	return records
}

// wantDenials checks that so many denials, and nothing else, were recorded since the last
// time.
func (a *auditor) wantDenials(t *testing.T, want int) {
	t.Helper()
	got := slices.DeleteFunc(a.records, func(r audit.Record) bool { return r.Event == audit.EventDenied })
	if len(got) > 0 || len(a.records) != want {
		t.Errorf("%+v of %d records, want %d denials", got, len(a.records), want)
	}
	a.records = nil
}

func newAuditedNode(t *testing.T) (node, *auditor) {
	w := newWorld(t)
	a := &auditor{}
	return newNode(t, w, func(c *Config) { c.Audit = a }), a
}

// TestWhatIsRecorded: calls that set counters, take numbers back or change the cluster are recorded
// twice, before and after.
func TestWhatIsRecorded(t *testing.T) {
	n, a := newAuditedNode(t)
	ctx := as("ops")
	seed := func(value int64, force bool) uint64 {
		res, err := n.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "Orders", Value: proto.Int64(value), Force: force})
		if err != nil {
			t.Fatal(err)
		}
		return res.LogIndex
	}
	first := audit.Record{Event: audit.EventSeed, Outcome: audit.OutcomeIntended, Database: "default", Name: "orders", After: int64(10)}
	second := first
	second.Outcome, second.Index = audit.OutcomeDone, seed(10, false)
	if diff := cmp.Diff([]audit.Record{first, second}, a.take(t)); diff != "" {
		t.Error(diff)
	}
	set, err := n.SetHiLo(ctx, &idnodev1.SetHiLoRequest{Tag: "Users", Max: 70})
	if err != nil {
		t.Fatal(err)
	}
	first = audit.Record{
		Event: audit.EventSetHiLo, Outcome: audit.OutcomeIntended, Database: "default", Name: "users",
		Before: int64(0), After: int64(70),
	}
	second = first
	second.Outcome, second.Index = audit.OutcomeDone, set.LogIndex
	if diff := cmp.Diff([]audit.Record{first, second}, a.take(t)); diff != "" {
		t.Error(diff)
	}
	first = audit.Record{
		Event: audit.EventSeed, Outcome: audit.OutcomeIntended, Database: "default", Name: "orders",
		After: int64(3), Force: true,
	}
	second = first
	second.Outcome, second.Before, second.Index = audit.OutcomeDone, int64(10), seed(3, true)
	if diff := cmp.Diff([]audit.Record{first, second}, a.take(t)); diff != "" {
		t.Error(diff)
	}
	deleted, err := n.DeleteIdentity(ctx, &idnodev1.DeleteIdentityRequest{Name: "orders", Forget: true})
	if err != nil {
		t.Fatal(err)
	}
	first = audit.Record{Event: audit.EventForget, Outcome: audit.OutcomeIntended, Database: "default", Name: "orders"}
	second = first
	second.Outcome, second.Before, second.Index = audit.OutcomeDone, int64(3), deleted.LogIndex
	if diff := cmp.Diff([]audit.Record{first, second}, a.take(t)); diff != "" {
		t.Error(diff)
	}
	for _, made := range [][2]string{
		{"setting", audit.EventSetting},
		{"create join token", audit.EventJoinToken},
		{"remove", audit.EventRemoveMember},
		{"set roles", audit.EventRoles},
	} {
		name, want := made[0], made[1]
		if err := useCases[name].make(ctx, n); err != nil {
			t.Fatal(err)
		}
		got := a.take(t)
		if len(got) != 2 || got[0].Event != want || got[0].Outcome != audit.OutcomeIntended || got[1].Event != want ||
			got[1].Outcome != audit.OutcomeDone {
			t.Errorf("%s: %+v", name, got)
		}
	}
	n.setRoles(t, everything(), shop(rights.Read))
	got := a.take(t)
	if diff := cmp.Diff(Roles{Roles: []rights.Role{everything()}}, got[1].Before); diff != "" {
		t.Errorf("the roles before: %s", diff)
	}
}

// TestWhoJoinsByItselfIsRecorded, once: it asks until it is a member.
func TestWhoJoinsByItselfIsRecorded(t *testing.T) {
	n, a := newAuditedNode(t)
	ctx := as("ops")
	newcomer := &raftlogv1.Member{Id: []byte("node-c----------"), Tag: "C"}
	add := func(m *raftlogv1.Member, err error) error {
		return n.AddMember(ctx, &peerv1.JoinRequest{Member: m}, found, func([]byte, *string) (*raftlogv1.Member, error) { return m, err })
	}
	if err := add(newcomer, nil); err != nil {
		t.Fatal(err)
	}
	if got := a.take(t); len(got) != 2 || got[0].Event != audit.EventAddMember || got[0].Name != "C" || got[1].Outcome != audit.OutcomeDone {
		t.Errorf("%+v", got)
	}
	member := n.world.State.Members()[0]
	if err := add(member, nil); err != nil || len(a.take(t)) > 0 {
		t.Errorf("a member that asks again is recorded, or refused: %v", err)
	}
	a.fail = errors.New("the disk is full")
	wantError(t, add(newcomer, errors.New("added without a record")), apierror.CodeUnavailable, apierror.ReasonAuditFailed, "")
}

// TestBackupsAreRecorded, with how much was read, also of those that were not read to
// their end.
func TestBackupsAreRecorded(t *testing.T) {
	n, a := newAuditedNode(t)
	var file bytes.Buffer
	if err := n.Backup(as("ops"), stale, &file); err != nil {
		t.Fatal(err)
	}
	index, _ := n.world.State.Hash()
	want := []audit.Record{
		{Event: audit.EventBackup, Outcome: audit.OutcomeIntended},
		{Event: audit.EventBackup, Outcome: audit.OutcomeDone, After: audit.Copied{Bytes: int64(file.Len())}, Index: index},
	}
	if diff := cmp.Diff(want, a.take(t)); diff != "" {
		t.Error(diff)
	}
	want[1].Outcome, want[1].Reason, want[1].After = audit.OutcomeUnknown, apierror.ReasonStopping, audit.Copied{Bytes: 10}
	if n.Backup(as("ops"), stale, brokenWriter{10}) == nil {
		t.Error("a backup that was not read to its end")
	}
	if diff := cmp.Diff(want, a.take(t)); diff != "" {
		t.Error(diff)
	}
	a.fail = errors.New("the disk is full")
	file.Reset()
	wantError(t, n.Backup(as("ops"), stale, &file), apierror.CodeUnavailable, apierror.ReasonAuditFailed, "")
	if file.Len() > 0 {
		t.Errorf("%d bytes were read without a record", file.Len())
	}
}

// TestWhatIsNotDoneIsRecordedAsSuch.
func TestWhatIsNotDoneIsRecordedAsSuch(t *testing.T) {
	n, a := newAuditedNode(t)
	_, err := n.DeleteIdentity(as("ops"), &idnodev1.DeleteIdentityRequest{Name: "nothing"})
	wantError(t, err, apierror.CodeNotFound, apierror.ReasonIdentityNotFound, "name")
	if got := a.take(t); len(got) != 2 || got[1].Outcome != audit.OutcomeRefused || got[1].Reason != apierror.ReasonIdentityNotFound {
		t.Errorf("%+v", got)
	}
	n.world.Set(func(f *fsmtest.Faults) { f.Fail = outcome.NewUnknown(outcome.Deadline, errors.New("lost")) })
	_, err = n.DeleteIdentity(as("ops"), &idnodev1.DeleteIdentityRequest{Name: "nothing"})
	wantError(t, err, apierror.CodeAborted, apierror.ReasonOutcomeUnknown, "")
	if got := a.take(t); len(got) != 2 || got[1].Outcome != audit.OutcomeUnknown {
		t.Errorf("%+v", got)
	}
}

// TestWhatCannotBeRecordedIsNotDone.
func TestWhatCannotBeRecordedIsNotDone(t *testing.T) {
	n, a := newAuditedNode(t)
	a.fail = errors.New("the disk is full")
	before := n.world.Proposals()
	for _, name := range []string{"seed", "seed by force", "hilo", "delete", "forget", "setting", "create join token", "remove", "set roles"} {
		wantError(t, useCases[name].make(as("ops"), n), apierror.CodeUnavailable, apierror.ReasonAuditFailed, "")
	}
	if n.world.Proposals() != before || n.cluster.asked != "" {
		t.Error("it was done all the same")
	}
	for _, name := range []string{"next", "range", "claim"} {
		if err := useCases[name].make(as("ops"), n); err != nil {
			t.Errorf("%s, which is not recorded: %v", name, err)
		}
	}
}

// TestDenialsAreRecorded, with the caller and the denied right.
func TestDenialsAreRecorded(t *testing.T) {
	n, a := newAuditedNode(t)
	n.setRoles(t, everything())
	for name, call := range useCases {
		a.records = nil
		if err := call.make(as("shop"), n); !denied(err) {
			t.Errorf("%s: %v", name, err)
		}
		if len(a.records) != 1 {
			t.Fatalf("%s: %+v", name, a.records)
		}
		r := a.records[0]
		if r.Event != audit.EventDenied || r.Outcome != audit.OutcomeRefused || r.Reason != apierror.ReasonPermissionDenied ||
			r.Principal != "shop" ||
			r.Address == "" || r.Call == "" || !strings.Contains(r.After.(string), call.need.List()[0].String()) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestAuditTail: who may change roles may read the audit log.
func TestAuditTail(t *testing.T) {
	n, a := newAuditedNode(t)
	lines, err := n.AuditTail(as("ops"), 10)
	if err != nil || len(lines) != 1 || string(lines[0]) != `{"event":"roles.set"}` {
		t.Errorf("%s, %v", lines, err)
	}
	a.fail = errors.New("the disk is gone")
	_, err = n.AuditTail(as("ops"), 10)
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonAuditFailed, "")
}
