package service

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/outcome"
)

// newMergeWorld is a world and its service.
func newMergeWorld(t *testing.T) (*world, *Service) {
	t.Helper()
	w := newWorld(t)
	return w, newNode(t, w, nil).Service
}

func TestMergedNamesAreCheckedAndFolded(t *testing.T) {
	w, s := newMergeWorld(t)
	res, err := s.MergeCounters(t.Context(), &idnodev1.MergeCountersRequest{
		Database: "Shop", Identities: []*idnodev1.IdentityValue{{Name: "Invoices|", Value: 7}},
		Hilos:  []*idnodev1.HiLoValue{{Tag: "Users", Max: 64}},
		Claims: []string{"Users/Ayende"},
	})
	if err != nil || res.Created != 2 || res.Claimed != 1 || res.LogIndex == 0 {
		t.Fatalf("%+v %v", res, err)
	}
	if c, ok := w.state.Identity("shop", "invoices"); !ok || c.Last != 7 {
		t.Errorf("%v %v", c, ok)
	}
	if c, ok := w.state.HiLo("shop", "users"); !ok || c.Max != 64 {
		t.Errorf("%v %v", c, ok)
	}
	if claimed := w.state.Claims("shop", "users/ayende", "", 2); !slices.Equal(claimed, []string{"users/ayende"}) {
		t.Errorf("claimed: %q", claimed)
	}
}

func TestADryRunChangesNothing(t *testing.T) {
	w, s := newMergeWorld(t)
	_, before := w.state.Hash()
	res, err := s.MergeCounters(t.Context(),
		&idnodev1.MergeCountersRequest{Identities: []*idnodev1.IdentityValue{{Name: "users", Value: 7}}, DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	same(t, res, &idnodev1.MergeCountersResponse{Created: 1, Changes: []*idnodev1.CounterChange{
		{Kind: idnodev1.CounterKind_COUNTER_KIND_IDENTITY, Name: "users", Created: true, After: 7},
	}})
	if _, after := w.state.Hash(); before != after {
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
		"a bad name":      {&idnodev1.MergeCountersRequest{Identities: []*idnodev1.IdentityValue{{Name: ""}}}, "INVALID_NAME"},
		"a bad tag":       {&idnodev1.MergeCountersRequest{Hilos: []*idnodev1.HiLoValue{{Tag: "a|"}}}, "INVALID_TAG"},
		"a bad claim":     {&idnodev1.MergeCountersRequest{Claims: []string{`a\b`}}, "INVALID_ID"},
		"a negative Max":  {&idnodev1.MergeCountersRequest{Hilos: []*idnodev1.HiLoValue{{Tag: "a", Max: -1}}}, "INVALID_MAX"},
		"a bad database":  {&idnodev1.MergeCountersRequest{Database: "a b"}, "INVALID_DATABASE"},
		"too many names":  {&idnodev1.MergeCountersRequest{Claims: many}, "INVALID_MERGE"},
		"too long at all": {&idnodev1.MergeCountersRequest{Claims: slices.Repeat([]string{strings.Repeat("x", 1000)}, 50)}, "INVALID_MERGE"},
	} {
		proposed := w.proposed
		_, err := s.MergeCounters(t.Context(), c.req)
		if e := new(Error); !errors.As(err, &e) || e.Reason != c.reason || w.proposed != proposed {
			t.Errorf("%s: %v, proposed %d times", name, err, w.proposed-proposed)
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
	if _, err := s.MergeCounters(t.Context(),
		&idnodev1.MergeCountersRequest{Identities: []*idnodev1.IdentityValue{{Name: "users", Value: 7}}}); err != nil {
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
	index, hash := w.state.Hash()
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
		if _, err := n.MergeCounters(t.Context(), &idnodev1.MergeCountersRequest{Identities: []*idnodev1.IdentityValue{long}}); err != nil {
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
	if wantError(t, err, PermissionDenied, ReasonPermissionDenied, ""); read == 0 || read > 1<<19 {
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
			wantError(t, n.Backup(as("shop"), linearizable, io.Discard), ResourceExhausted, ReasonOverloaded, "")
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
	w.unreadable = outcome.NewNotApplied(outcome.NoQuorum, nil)
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
	if e := new(Error); !errors.As(s.Backup(t.Context(), stale, io.Discard), &e) || e.Reason != ReasonOverloaded {
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
