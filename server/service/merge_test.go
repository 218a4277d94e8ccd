package service

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/test/fsmtest"
)

// newMergeWorld is a world and its service.
func newMergeWorld(t *testing.T) (*world, *Service) {
	t.Helper()
	w := newWorld(t)
	return w, newNode(t, w, nil).Service
}

func mergeIn(databases ...*idnodev1.DatabaseMerge) *idnodev1.MergeCountersRequest {
	return &idnodev1.MergeCountersRequest{Databases: databases}
}

func TestMergedNamesAreCheckedAndFolded(t *testing.T) {
	w, s := newMergeWorld(t)
	res, err := s.MergeCounters(t.Context(), mergeIn(&idnodev1.DatabaseMerge{
		Database: "Shop", Identities: []*idnodev1.IdentityValue{{Name: "Invoices|", Value: 7}},
		Hilos:  []*idnodev1.HiLoValue{{Tag: "Users", Max: 64}},
		Claims: []string{"Users/Ayende"},
	}))
	if err != nil || res.Created != 2 || res.Claimed != 1 || res.LogIndex == 0 {
		t.Fatalf("%+v %v", res, err)
	}
	if c, ok := w.State.Identity("shop", "invoices"); !ok || c.Last != 7 {
		t.Errorf("%v %v", c, ok)
	}
	if c, ok := w.State.HiLo("shop", "users"); !ok || c.Max != 64 {
		t.Errorf("%v %v", c, ok)
	}
	if claimed := w.State.Claims("shop", "users/ayende", "", 2); !slices.Equal(claimed, []string{"users/ayende"}) {
		t.Errorf("claimed: %q", claimed)
	}
}

// TestEachDatabaseIsMergedByItself: one that is refused does not stop the others, and the call fails.
func TestEachDatabaseIsMergedByItself(t *testing.T) {
	w, s := newMergeWorld(t)
	claim := func(database, id string) *idnodev1.DatabaseMerge {
		return &idnodev1.DatabaseMerge{Database: database, Claims: []string{id}}
	}
	users := &idnodev1.DatabaseMerge{Database: "a", Identities: []*idnodev1.IdentityValue{{Name: "users", Value: 7}}}
	res, err := s.MergeCounters(t.Context(), mergeIn(users, claim("b", "x")))
	if err != nil || res.GetCreated() != 1 || res.GetClaimed() != 1 {
		t.Fatalf("%v, %v", res, err)
	}
	res, err = s.MergeCounters(t.Context(), mergeIn(claim("b", "x"), claim("a", "users/7")))
	if err != nil || res.GetUnchanged() != 1 || len(res.GetConflicts()) != 1 || res.GetConflicts()[0].GetDatabase() != "a" {
		t.Fatalf("%v, %v", res, err)
	}
	if _, err := s.UpdateSetting(t.Context(), &idnodev1.UpdateSettingRequest{Key: "max-databases", Value: proto.Int64(3)}); err != nil {
		t.Fatal(err)
	}
	_, err = s.MergeCounters(t.Context(), mergeIn(claim("c", "x"), claim("d", "x"), claim("a", "y")))
	wantError(t, err, apierror.CodeResourceExhausted, apierror.ReasonQuota, "")
	if got := w.State.Databases(); !slices.Equal(got, []string{"a", "b", "c"}) || len(w.State.Claims("a", "y", "", 2)) != 1 {
		t.Errorf("databases %q, claimed %q", got, w.State.Claims("a", "", "", 9))
	}
	_, err = s.MergeCounters(t.Context(), mergeIn(&idnodev1.DatabaseMerge{Database: "empty"}))
	if got := w.State.Databases(); err != nil || len(got) != 3 {
		t.Errorf("nothing is merged: %v; databases %q", err, got)
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	w, s := newMergeWorld(t)
	_, before := w.State.Hash()
	req := mergeIn(&idnodev1.DatabaseMerge{Identities: []*idnodev1.IdentityValue{{Name: "users", Value: 7}}})
	req.DryRun = true
	res, err := s.MergeCounters(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	same(t, res, &idnodev1.MergeCountersResponse{Created: 1, Changes: []*idnodev1.CounterChange{
		{Kind: idnodev1.CounterKind_COUNTER_KIND_IDENTITY, Name: "users", IsNew: true, After: 7, Database: "default"},
	}, Growth: []*idnodev1.MergeGrowth{{Databases: 1, Identities: 1, Bytes: 5}}})
	if _, after := w.State.Hash(); before != after {
		t.Error("the state changed")
	}
}

func TestMergesThatAreRefused(t *testing.T) {
	w, s := newMergeWorld(t)
	many := make([]string, MaxMergeNames+1)
	for i := range many {
		many[i] = "x"
	}
	for name, c := range map[string]struct {
		req    *idnodev1.MergeCountersRequest
		reason string
	}{
		"a bad name":         {mergeIn(&idnodev1.DatabaseMerge{Identities: []*idnodev1.IdentityValue{{Name: ""}}}), "INVALID_NAME"},
		"a bad tag":          {mergeIn(&idnodev1.DatabaseMerge{Hilos: []*idnodev1.HiLoValue{{Tag: "a|"}}}), "INVALID_TAG"},
		"a bad claim":        {mergeIn(&idnodev1.DatabaseMerge{Claims: []string{`a\b`}}), "INVALID_ID"},
		"a negative Max":     {mergeIn(&idnodev1.DatabaseMerge{Hilos: []*idnodev1.HiLoValue{{Tag: "a", Max: -1}}}), "INVALID_MAX"},
		"a bad database":     {mergeIn(&idnodev1.DatabaseMerge{Database: "a b"}), "INVALID_DATABASE"},
		"too many names":     {mergeIn(&idnodev1.DatabaseMerge{Claims: many}), "INVALID_MERGE"},
		"a database twice":   {mergeIn(&idnodev1.DatabaseMerge{}, &idnodev1.DatabaseMerge{Database: "Default"}), "INVALID_MERGE"},
		"too many databases": {mergeIn(slices.Repeat([]*idnodev1.DatabaseMerge{{}}, MaxMergeNames+1)...), "INVALID_MERGE"},
		"too many of two": {mergeIn(&idnodev1.DatabaseMerge{Claims: many[1:]}, &idnodev1.DatabaseMerge{
			Database: "b", Claims: many[:1],
		}), "INVALID_MERGE"},
		"a negative growth": {&idnodev1.MergeCountersRequest{Already: &idnodev1.MergeGrowth{Bytes: -1}}, "INVALID_MERGE"},
		"a growth that overflows": {
			mergeIn(&idnodev1.DatabaseMerge{Already: &idnodev1.MergeGrowth{Claims: 1 << 62}}), "INVALID_MERGE",
		},
		"too long at all": {mergeIn(&idnodev1.DatabaseMerge{Claims: slices.Repeat([]string{strings.Repeat("x", 1000)}, 50)}), "INVALID_MERGE"},
	} {
		proposed := w.Proposals()
		_, err := s.MergeCounters(t.Context(), c.req)
		if e := new(apierror.Error); !errors.As(err, &e) || e.Reason != c.reason || w.Proposals() != proposed {
			t.Errorf("%s: %v, proposed %d times", name, err, w.Proposals()-proposed)
		}
	}
	for name, req := range map[string]*idnodev1.MergeClusterRequest{
		"a negative floor": {Floor: -1},
		"a bad tag":        {Tags: []*idnodev1.GivenTag{{Tag: "a", Id: strings.Repeat("0", 32)}}},
		"a bad id":         {Tags: []*idnodev1.GivenTag{{Tag: "D", Id: "0"}}},
		"too many tags":    {Tags: make([]*idnodev1.GivenTag, MaxMergeTags+1)},
	} {
		if _, err := s.MergeCluster(t.Context(), req); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestABackupIsTheState(t *testing.T) {
	w, s := newMergeWorld(t)
	merge := mergeIn(&idnodev1.DatabaseMerge{Identities: []*idnodev1.IdentityValue{{Name: "users", Value: 7}}})
	if _, err := s.MergeCounters(t.Context(), merge); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := s.Backup(t.Context(), linearizable, &file); err != nil {
		t.Fatal(err)
	}
	r, err := backup.NewReader(&file)
	if err != nil {
		t.Fatal(err)
	}
	index, hash := w.State.Hash()
	if r.Header().GetLogIndex() != index || r.Header().GetStateHash() != hash {
		t.Errorf("header %v at index %d", r.Header(), index)
	}
	found := false
	for {
		m, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		found = found || m.GetIdentity().GetName() == "users" && m.GetIdentity().GetLast() == 7
	}
	if !found {
		t.Error("the identity is not in it")
	}
}

// writerFunc is a reader of backups.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

// TestABackupEndsWithTheRight: a caller that loses it while it reads gets nothing more.
func TestABackupEndsWithTheRight(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	for i := range 400 {
		long := &idnodev1.IdentityValue{Name: strings.Repeat("x", 1900) + strconv.Itoa(i), Value: 7}
		if _, err := n.MergeCounters(t.Context(), mergeIn(&idnodev1.DatabaseMerge{Identities: []*idnodev1.IdentityValue{long}})); err != nil {
			t.Fatal(err)
		}
	}
	copying := rights.Role{
		Name: "copying", Principals: []string{"shop"},
		Grants: []rights.Grant{{Database: rights.Any, Rights: rights.Backup}},
	}
	n.setRoles(t, everything(), copying)
	read := 0
	err := n.Backup(as("shop"), linearizable, writerFunc(func(b []byte) (int, error) {
		if read == 0 {
			n.setRoles(t, everything())
		}
		read += len(b)
		return len(b), nil
	}))
	if wantError(t, err, apierror.CodePermissionDenied, apierror.ReasonPermissionDenied, ""); read == 0 || read > 1<<19 {
		t.Errorf("%d bytes were read", read)
	}
}

// TestOneBackupForEachCaller: whoever begins several and reads none takes no other's place.
func TestOneBackupForEachCaller(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	begun := false
	err := n.Backup(as("shop"), linearizable, writerFunc(func(b []byte) (int, error) {
		if !begun {
			begun = true
			wantError(t, n.Backup(as("shop"), linearizable, io.Discard), apierror.CodeResourceExhausted, apierror.ReasonOverloaded, "")
			if err := n.Backup(as("depot"), linearizable, io.Discard); err != nil {
				t.Errorf("another caller: %v", err)
			}
		}
		return len(b), nil
	}))
	if err != nil || !begun {
		t.Errorf("begun %v: %v", begun, err)
	}
	if err := n.Backup(as("shop"), linearizable, io.Discard); err != nil {
		t.Errorf("the next: %v", err)
	}
}

func TestBackupsThatAreRefused(t *testing.T) {
	w, s := newMergeWorld(t)
	w.Set(func(f *fsmtest.Faults) { f.Unreadable = outcome.NewNotApplied(outcome.NoQuorum, nil) })
	if err := s.Backup(t.Context(), linearizable, io.Discard); err == nil {
		t.Error("a linearizable backup without a quorum")
	}
	if err := s.Backup(t.Context(), stale, io.Discard); err != nil {
		t.Errorf("a stale backup without a quorum: %v", err)
	}
	s.backups.running.Store(maxBackups - 1)
	if err := s.Backup(t.Context(), stale, io.Discard); err != nil {
		t.Errorf("a backup beside others: %v", err)
	}
	s.backups.running.Store(maxBackups)
	if e := new(apierror.Error); !errors.As(s.Backup(t.Context(), stale, io.Discard), &e) || e.Reason != apierror.ReasonOverloaded {
		t.Errorf("one backup more than may be: %v", e)
	}
	s.backups.running.Store(0)
	if err := s.Backup(t.Context(), stale, brokenWriter{0}); err == nil {
		t.Error("a backup that nobody reads")
	}
}

// brokenWriter takes so many bytes.
type brokenWriter struct{ bytes int }

func (w brokenWriter) Write([]byte) (int, error) { return w.bytes, errors.New("gone") }
