package main

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
)

// TestPrintMembers: what is known of a member is shown, and nothing is made up of one
// that does not answer.
func TestPrintMembers(t *testing.T) {
	members := []*idnodev1.Member{
		{
			Tag: "A", Role: idnodev1.Role_ROLE_LEADER, Reachable: true, Version: "v1.2.0", LeaderPriority: proto.Uint32(2),
			CertificateExpiresAt: timestamppb.New(time.Date(2027, 2, 28, 12, 0, 0, 0, time.UTC)),
			GrpcAddress:          "a:1", RaftAddress: "a:2", HttpAddress: "a:3", Id: "aa",
			Callers: []*idnodev1.CallersOfCA{{Ca: "CN=new 01", Connections: 3}, {Ca: "CN=old 02"}},
		},
		{
			Tag: "B", Role: idnodev1.Role_ROLE_FOLLOWER, Reachable: true, Behind: 12, StorageFull: true,
			CertificateExpiresAt: timestamppb.New(time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)),
			GrpcAddress:          "b:1", RaftAddress: "b:2", Id: "bb",
		},
		{
			Tag: "C", Role: idnodev1.Role_ROLE_FOLLOWER, UnreachableFor: durationpb.New(192*time.Second + 400*time.Millisecond),
			GrpcAddress: "c:1", RaftAddress: "c:2", Id: "cc",
		},
		{Tag: "D", Role: idnodev1.Role_ROLE_WATCHER, GrpcAddress: "d:1", RaftAddress: "d:2", Id: "dd"},
		{Tag: "E", Role: idnodev1.Role_ROLE_REMOVED, GrpcAddress: "e:1", RaftAddress: "e:2", Id: "ee"},
	}
	for wide, want := range map[bool]string{true: `TAG  ROLE      ANSWERS    BEHIND  STORAGE  CERTIFICATE  VERSION  GRPC  PRIORITY  RAFT  HTTP  ID  CALLERS
A    leader    yes        0       ok       2027-02-28   v1.2.0   a:1   2         a:2   a:3   aa  CN=new 01: 3; CN=old 02: 0
B    follower  yes        12      full     2026-11-29   -        b:1   -         b:2   -     bb  -
C    follower  no, 3m12s  -       -        -            -        c:1   -         c:2   -     cc  -
D    watcher   no         -       -        -            -        d:1   -         d:2   -     dd  -
E    removed   -          -       -        -            -        e:1   -         e:2   -     ee  -
`, false: `TAG  ROLE      ANSWERS    BEHIND  STORAGE  CERTIFICATE  VERSION  GRPC
A    leader    yes        0       ok       2027-02-28   v1.2.0   a:1
B    follower  yes        12      full     2026-11-29   -        b:1
C    follower  no, 3m12s  -       -        -            -        c:1
D    watcher   no         -       -        -            -        d:1
E    removed   -          -       -        -            -        e:1
`} {
		var out strings.Builder
		if printMembers(&out, members, wide); out.String() != want {
			t.Errorf("printed:\n%s\nwant:\n%s", out.String(), want)
		}
	}
}

// TestMembersWithoutAQuorum: a node that has none shows what it knows, and the command
// says so; where nobody answers, or answers otherwise, the error stays.
func TestMembersWithoutAQuorum(t *testing.T) {
	alone := func(reason string) string {
		refusal := failure(t, codes.Unavailable, reason, "no leader")
		return newFakeNode(t, func(req proto.Message) (proto.Message, error) {
			if _, asked := req.(*idnodev1.GetStatusRequest); asked {
				return &idnodev1.GetStatusResponse{}, nil
			}
			if req.(*idnodev1.ListMembersRequest).GetConsistency() != idnodev1.Consistency_CONSISTENCY_STALE {
				return nil, refusal
			}
			return &idnodev1.ListMembersResponse{Members: []*idnodev1.Member{{Tag: "A"}}}, nil
		}).addr
	}
	got := command(t, "cluster", "members", "--endpoint", unusedAddr(t)+","+alone("NO_QUORUM"))
	if got.code != exitOK || !strings.Contains(got.stdout, "\nA  ") || !strings.HasPrefix(got.stderr, "idnode: warning: ") ||
		!strings.Contains(got.stderr, "NO_QUORUM") {
		t.Errorf("%+v", got)
	}
	got = command(t, "cluster", "members", "--endpoint", unusedAddr(t))
	if got.code != exitUnavailable || got.stdout != "" || strings.Contains(got.stderr, "warning") {
		t.Errorf("nobody answers: %+v", got)
	}
	got = command(t, "cluster", "members", "--endpoint",
		newFakeNode(t, refuse(failure(t, codes.PermissionDenied, "PERMISSION_DENIED", "no"))).addr)
	if got.code != exitFailed || got.stdout != "" {
		t.Errorf("refused: %+v", got)
	}
}
