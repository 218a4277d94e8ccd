package peers

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// nameService answers look-ups after a time, or not at all, and records dials.
type nameService struct {
	ips    []string
	err    error
	takes  time.Duration
	silent []string // IP addresses at which nobody answers.
	dialed []string
}

func (s *nameService) lookup(ctx context.Context, _ string) ([]string, error) {
	select {
	case <-time.After(s.takes):
		return s.ips, s.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *nameService) dial(_ context.Context, address string) (net.Conn, error) {
	s.dialed = append(s.dialed, address)
	if host, _, _ := net.SplitHostPort(address); slices.Contains(s.silent, host) {
		return nil, errors.New("nobody is there")
	}
	conn, _ := net.Pipe()
	return conn, nil
}

// TestTheLastAddressesOfAName: a name that cannot be looked up, or not soon, is dialled at
// the addresses that it had last, also after a restart; one that never had any is not.
func TestTheLastAddressesOfAName(t *testing.T) {
	known := nameService{ips: []string{"10.0.0.2", "10.0.0.1"}}
	refused := nameService{err: errors.New("no such host")}
	hangs := nameService{takes: time.Hour}
	for name, tt := range map[string]struct {
		// before and now are the name service at a first dial and at the dial under test; before is
		// nil where the addresses are from a record.
		before *nameService
		now    nameService
		last   map[string][]string
		within time.Duration
		want   []string // What is dialled; none where the dial fails.
	}{
		"looked up":               {now: known, want: []string{"10.0.0.2:7"}},
		"refused":                 {before: &known, now: refused, want: []string{"10.0.0.1:7"}},
		"hangs":                   {before: &known, now: hangs, within: lookupWait, want: []string{"10.0.0.1:7"}},
		"refused after a restart": {last: map[string][]string{"b": {"10.0.0.3"}}, now: refused, want: []string{"10.0.0.3:7"}},
		"hangs after a restart": {
			last: map[string][]string{"b": {"10.0.0.3"}}, now: hangs, within: lookupWait,
			want: []string{"10.0.0.3:7"},
		},
		"has others now": {last: map[string][]string{"b": {"10.0.0.3"}}, now: known, want: []string{"10.0.0.2:7"}},
		"slow, and never known": {
			now: nameService{ips: known.ips, takes: time.Second}, within: time.Second,
			want: []string{"10.0.0.2:7"},
		},
		"refused, and never known":       {now: refused},
		"hangs, and never known":         {now: hangs, within: lookupLimit},
		"the first of several is silent": {now: nameService{ips: known.ips, silent: known.ips[:1]}, want: []string{"10.0.0.2:7", "10.0.0.1:7"}},
		"of several that were known, too": {
			last: map[string][]string{"b": {"10.0.0.3", "10.0.0.4"}},
			now:  nameService{err: refused.err, silent: []string{"10.0.0.3"}}, want: []string{"10.0.0.3:7", "10.0.0.4:7"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				s := tt.now
				h := NewHosts(ctx, s.dial, s.lookup, tt.last)
				if tt.before != nil {
					s = *tt.before
					if _, err := h.DialContext(t.Context(), "b:7"); err != nil {
						t.Fatal(err)
					}
					s = tt.now
				}
				began := time.Now()
				_, err := h.DialContext(t.Context(), "b:7")
				if took := time.Since(began); took != tt.within {
					t.Errorf("it took %s, want %s", took, tt.within)
				}
				if (err == nil) != (tt.want != nil) || !slices.Equal(s.dialed, tt.want) {
					t.Errorf("%v: dialled %v, want %v", err, s.dialed, tt.want)
				}
			})
		})
	}
}

// TestASlowLookUpIsForTheNextDial: who always answers late is heard all the same.
func TestASlowLookUpIsForTheNextDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &nameService{ips: []string{"10.0.0.2"}, takes: 2 * lookupWait}
		alive, end := context.WithCancel(t.Context())
		defer end()
		h := NewHosts(alive, s.dial, s.lookup, map[string][]string{"b": {"10.0.0.1"}})
		for range 2 {
			if _, err := h.DialContext(t.Context(), "b:7"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(s.takes)
		}
		if want := []string{"10.0.0.1:7", "10.0.0.2:7"}; !slices.Equal(s.dialed, want) {
			t.Errorf("dialled %v, want %v", s.dialed, want)
		}
	})
}

// TestADialInAHurryWaitsLessForNames: a follower that asks whether its leader lives has 50 ms.
func TestADialInAHurryWaitsLessForNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &nameService{takes: time.Hour}
		alive, end := context.WithCancel(t.Context())
		defer end()
		h := NewHosts(alive, s.dial, s.lookup, map[string][]string{"b": {"10.0.0.1"}})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // As after the loss of a leader.
		defer cancel()
		if _, err := h.DialContext(ctx, "b:7"); err != nil {
			t.Error(err)
		}
	})
}

// TestNoNameIsLookedUpWithoutNeed: an IP address is not looked up, and a Network gets names
// unresolved.
func TestNoNameIsLookedUpWithoutNeed(t *testing.T) {
	s := &nameService{err: errors.New("asked")}
	for _, h := range []*Hosts{
		NewHosts(t.Context(), s.dial, s.lookup, nil),
		NewHosts(t.Context(), s.dial, nil, nil),
	} {
		for _, address := range []string{"10.0.0.1:7", "[::1]:7", "name:7"} {
			_, err := h.DialContext(t.Context(), address)
			if wantErr := h.lookup != nil && strings.HasPrefix(address, "name"); (err != nil) != wantErr {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
}

// TestTheRecordHasTheAddressesOfMembers, not of every name that was ever dialled.
func TestTheRecordHasTheAddressesOfMembers(t *testing.T) {
	h := NewHosts(t.Context(), nil, nil, map[string][]string{"b": {"10.0.0.1"}, "gone": {"10.0.0.2"}, "stranger": {"10.0.0.3"}})
	got := h.of([]*raftlogv1.Member{
		{GrpcAddress: "b:7400", RaftAddress: "c:7401"}, {GrpcAddress: "gone:7400", Removed: true}, {GrpcAddress: "10.0.0.9:7400"},
	})
	if len(got) != 1 || !slices.Equal(got["b"], []string{"10.0.0.1"}) {
		t.Errorf("%v", got)
	}
}
