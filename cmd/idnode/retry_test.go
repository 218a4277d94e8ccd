package main

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/client/idnodev1"
)

// unusedAddr returns a loopback address where nobody listens.
func unusedAddr(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	return lis.Addr().String()
}

// TestEndpointsInOrder says after which failures of the first endpoint the
// second one is asked, for a call with a request id, one that only reads, and
// one that must not be repeated.
func TestEndpointsInOrder(t *testing.T) {
	noQuorum := failure(t, codes.Unavailable, "NO_QUORUM", "no leader")
	unknown := failure(t, codes.Unavailable, reasonUnknown, "leader lost")
	lost := failure(t, codes.Unavailable, "", "connection lost")
	refused := failure(t, codes.NotFound, "NOT_FOUND", "no such thing")
	tests := []struct {
		name string
		line string
		err  error
		want bool
	}{
		{"nothing happened, request id", "claim x", noQuorum, true},
		{"nothing happened, read", "identity get x", noQuorum, true},
		{"nothing happened, change", "cluster remove C --yes", noQuorum, true},
		{"no node of ours, change", "cluster remove C --yes", failure(t, codes.Unimplemented, "", "404"), true},
		{"unknown, request id", "claim x", unknown, true},
		{"unknown, change", "cluster remove C --yes", unknown, false},
		{"connection lost, request id", "claim x", lost, true},
		{"connection lost, read", "identity get x", lost, true},
		{"connection lost, change", "cluster remove C --yes", lost, false},
		{"refused, request id", "claim x", refused, false},
		{"refused, read", "identity get x", refused, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first := newFakeNode(t, refuse(tt.err))
			second := newFakeNode(t, refuse(failure(t, codes.Internal, "", "reached")))
			first.applied, second.applied = 5, 6
			command(t, append(strings.Fields(tt.line), "--endpoint", first.addr, "--endpoint", second.addr)...)
			if got := len(second.requests()) == 1; got != tt.want {
				t.Errorf("second endpoint asked: %t, want %t", got, tt.want)
			}
		})
	}
}

// TestRetryCarriesWhatWasKnown checks that a repeat has the same request id, and
// the newest log index that an endpoint told before the first try: one that has just started knows
// an old one, which may have been forgotten.
func TestRetryCarriesWhatWasKnown(t *testing.T) {
	first := newFakeNode(t, refuse(failure(t, codes.Unavailable, reasonUnknown, "leader lost")))
	second := newFakeNode(t, answer(&idnodev1.GenerateResponse{Ids: []string{"users/7"}}))
	first.applied, second.applied = 5, 60
	got := commandEnv(t, []string{"IDNODE_ENDPOINTS=" + first.addr + "," + second.addr}, "next", "users|")
	if got != (outcome{stdout: "users/7\n"}) {
		t.Fatalf("%+v", got)
	}
	one := first.requests()[0].(*idnodev1.GenerateRequest)
	two := second.requests()[0].(*idnodev1.GenerateRequest)
	want := proto.CloneOf(one)
	want.RequestId.RetrySince = proto.Uint64(60)
	if diff := cmp.Diff(want, two, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if one.GetRequestId().RetrySince != nil {
		t.Error("the first try claims to be a retry")
	}
}

// TestUnknownOutcomeIsNotHidden by a later endpoint that did nothing: the
// command says how to repeat itself safely.
func TestUnknownOutcomeIsNotHidden(t *testing.T) {
	first := newFakeNode(t, refuse(failure(t, codes.Unavailable, "", "connection lost")))
	second := newFakeNode(t, refuse(failure(t, codes.Unavailable, "NO_QUORUM", "no leader")))
	first.applied = 5
	got := command(t, "next", "users|", "--request-id", "r1", "--endpoint", first.addr, "--endpoint", second.addr)
	for _, want := range []string{
		"OUTCOME_UNKNOWN", "NO_QUORUM", "(tried " + first.addr + ", " + second.addr + ")",
		"--request-id r1 --retry-since 5",
	} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("%q does not say %q", got.stderr, want)
		}
	}
	if got.code != exitUnavailable {
		t.Errorf("exit code %d", got.code)
	}
}

// TestUnreachableEndpointsAreSkipped also by calls that must not be repeated.
func TestUnreachableEndpointsAreSkipped(t *testing.T) {
	node := newFakeNode(t, answer(&idnodev1.RemoveMemberResponse{}))
	got := command(t, "cluster", "remove", "C", "--yes", "--endpoint", unusedAddr(t), "--endpoint", node.addr)
	if got != (outcome{stdout: "C removed\n"}) {
		t.Errorf("%+v", got)
	}
}

func TestNobodyReachable(t *testing.T) {
	addr, zoned := unusedAddr(t), "[::1%lo]:1"
	got := command(t, "cluster", "status", "--endpoint", addr)
	want := "idnode: UNAVAILABLE: cannot reach " + addr + ": dial tcp " + addr + ": connect: connection refused\n"
	if got != (outcome{code: exitUnavailable, stderr: want}) {
		t.Errorf("%+v", got)
	}
	// There may be no IPv6.
	got = command(t, "cluster", "status", "--endpoint", zoned)
	want = "idnode: UNAVAILABLE: cannot reach " + zoned + ": dial tcp " + zoned + ": connect: "
	if got.code != exitUnavailable || !strings.HasPrefix(got.stderr, want) {
		t.Errorf("%+v", got)
	}
}

// TestSilentEndpointGetsItsShare checks that a node which accepts and says
// nothing leaves time for the next one.
func TestSilentEndpointGetsItsShare(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	node := newFakeNode(t, answer(&idnodev1.ClaimResponse{Id: "x"}))
	node.applied = 1
	start := time.Now()
	got := command(t, "claim", "x", "--timeout", "2s", "--endpoint", silent.Addr().String(), "--endpoint", node.addr)
	if got != (outcome{stdout: "x\n"}) {
		t.Errorf("%+v", got)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %s", took)
	}
}

// TestTimeout ends a call whose node never answers.
func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	node := newFakeNode(t, func(proto.Message) (proto.Message, error) {
		<-release
		return nil, nil
	})
	t.Cleanup(func() { close(release) })
	got := command(t, "cluster", "remove", "C", "--yes", "--timeout", "100ms", "--endpoint", node.addr)
	want := "idnode: OUTCOME_UNKNOWN: DEADLINE_EXCEEDED: no answer within the timeout; whether it took effect is not known\n"
	if got != (outcome{code: exitUnavailable, stderr: want}) {
		t.Errorf("%+v", got)
	}
}
