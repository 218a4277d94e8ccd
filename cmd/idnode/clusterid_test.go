package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/client/idnodev1"
)

const (
	someCluster  = "00112233445566778899aabbccddeeff"
	otherOne     = "ffeeddccbbaa99887766554433221100"
	firstSuccess = "users/1\n"
)

// clusterOfNodes starts fake nodes of clusters, and returns their addresses.
func clusterOfNodes(t *testing.T, ids ...string) (nodes []*fakeNode, addresses []string) {
	t.Helper()
	for _, id := range ids {
		n := newFakeNode(t, answer(&idnodev1.GenerateResponse{Ids: []string{"users/1"}}))
		n.cluster, n.members, n.applied = id, 3, 7
		nodes, addresses = append(nodes, n), append(addresses, n.addr)
	}
	return nodes, addresses
}

// TestEndpointsOfTwoClusters get nothing from a command that does not say its cluster, in any order;
// one that does gets its ids from that.
func TestEndpointsOfTwoClusters(t *testing.T) {
	const own, other, down = someCluster, otherOne, ""
	for _, ids := range [][]string{
		{own, other}, {other, own}, {own, own, other}, {own, other, own}, {other, own, own}, {down, own, other}, {other, down, own},
	} {
		nodes, addresses := clusterOfNodes(t, ids...)
		for i, id := range ids {
			if id == down {
				addresses[i] = unusedAddr(t)
			}
		}
		line := []string{"next", "users|", "--endpoint", strings.Join(addresses, ",")}
		got := command(t, line...)
		if got.code != exitFailed || !strings.HasPrefix(got.stderr, "idnode: OTHER_CLUSTER: ") ||
			!strings.Contains(got.stderr, own) || !strings.Contains(got.stderr, other) {
			t.Errorf("%v: %+v", ids, got)
		}
		for i, n := range nodes {
			if len(n.requests()) > 0 {
				t.Errorf("%v: node %d was called", ids, i)
			}
		}
		for _, pinned := range []outcome{
			command(t, append(line, "--cluster-id", own)...), commandEnv(t, []string{"IDNODE_CLUSTER_ID=" + own}, line...),
		} {
			if pinned != (outcome{stdout: firstSuccess}) {
				t.Errorf("%v, with the cluster's id: %+v", ids, pinned)
			}
		}
		for i, n := range nodes {
			if ids[i] == other && len(n.requests()) > 0 {
				t.Errorf("%v: the other cluster's node took a call", ids)
			}
		}
	}
	_, addresses := clusterOfNodes(t, other, other)
	got := command(t, "next", "users|", "--cluster-id", own, "--endpoint", strings.Join(addresses, ","))
	if got.code != exitFailed || !strings.HasPrefix(got.stderr, "idnode: OTHER_CLUSTER: ") {
		t.Errorf("no node of its cluster: %+v", got)
	}
	if got := command(t, "next", "users|", "--cluster-id", "prod"); got.code != exitUsage || !strings.Contains(got.stderr, "--cluster-id") {
		t.Errorf("no id: %+v", got)
	}
}

// TestEachCallNamesTheCluster once it is known, and a cluster of one node is named.
func TestEachCallNamesTheCluster(t *testing.T) {
	nodes, addresses := clusterOfNodes(t, someCluster)
	nodes[0].members = 1
	got := command(t, "next", "users|", "--endpoint", unusedAddr(t)+","+addresses[0])
	warned := strings.Contains(got.stderr, addresses[0]+" is a cluster of one node, "+someCluster)
	if got.code != exitOK || got.stdout != firstSuccess || !warned {
		t.Errorf("%+v", got)
	}
	if nodes[0].unnamed > 0 {
		t.Error("a call named no cluster")
	}
}

// TestContextsKeepTheCluster that their endpoints lead to.
func TestContextsKeepTheCluster(t *testing.T) {
	home := t.TempDir()
	env := []string{"XDG_CONFIG_HOME=" + home}
	nodes, addresses := clusterOfNodes(t, someCluster, someCluster, otherOne)
	do := func(want string, args ...string) {
		t.Helper()
		if got := commandEnv(t, env, args...); !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
	do("OTHER_CLUSTER", "context", "save", "prod", "--endpoint", strings.Join(addresses, ","))
	do("there is no context", "next", "users|", "--context", "prod")
	do("", "context", "save", "prod", "--endpoint", strings.Join(addresses[:2], ","))
	do("prod  "+strings.Join(addresses[:2], ",")+"  cluster "+someCluster+"\n", "context", "list")
	do("users/1", "next", "users|", "--context", "prod")
	nodes[0].cluster, nodes[1].cluster = otherOne, otherOne // As after a recovery, or at other machines.
	do("OTHER_CLUSTER", "next", "users|", "--context", "prod")
	do("users/1", "next", "users|", "--context", "prod", "--cluster-id", otherOne)
	do("no endpoint told its cluster's id", "context", "save", "later", "--endpoint", unusedAddr(t))
	file := filepath.Join(home, "idnode", "contexts.yaml")
	if text := string(mustRead(t, file)); strings.Count(text, "cluster-id") != 1 {
		t.Error(text)
	}
}

// TestTwoContextsAreSavedAtOnce: one while the other asks for its cluster.
func TestTwoContextsAreSavedAtOnce(t *testing.T) {
	env := []string{"XDG_CONFIG_HOME=" + t.TempDir()}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	saved, nobody := make(chan struct{}), unusedAddr(t)
	go func() {
		defer close(saved)
		conn, err := lis.Accept()
		if err != nil {
			return
		}
		commandEnv(t, env, "context", "save", "second", "--endpoint", nobody, "--cluster-id", someCluster)
		_, _ = conn.Close(), lis.Close()
	}()
	commandEnv(t, env, "context", "save", "first", "--endpoint", lis.Addr().String())
	<-saved
	if got := commandEnv(t, env, "context", "list").stdout; !strings.Contains(got, "first") || !strings.Contains(got, "second") {
		t.Errorf("the contexts are %q", got)
	}
}

// TestHealthIsOfAnyCluster: it is about a node, which may not have joined what IDNODE_CLUSTER_ID says.
func TestHealthIsOfAnyCluster(t *testing.T) {
	nodes, addresses := clusterOfNodes(t, otherOne)
	got := commandEnv(t, []string{"IDNODE_CLUSTER_ID=" + someCluster}, "health", "--endpoint", addresses[0])
	if nodes[0].unnamed == 0 || strings.Contains(got.stderr, "OTHER_CLUSTER") {
		t.Errorf("%+v", got)
	}
}

// TestATryThatDidNothingIsNone: a repeat of one is a first request. The cluster would refuse it as a
// retry that may have been forgotten, if the refusing node has just started and knows an old index.
func TestATryThatDidNothingIsNone(t *testing.T) {
	for _, tt := range []struct {
		code    codes.Code
		reason  string
		retries bool
	}{
		{codes.Unavailable, "STARTING", false},
		{codes.Unavailable, "STOPPING", false},
		{codes.Unavailable, "NO_QUORUM", false},
		{codes.Unavailable, "AUDIT_FAILED", false},
		{codes.Unavailable, "OVERLOADED", false},
		{codes.Unavailable, "RESERVE_TOO_OLD", false},
		{codes.FailedPrecondition, "OTHER_CLUSTER", false},
		{codes.Unimplemented, "", false},
		{codes.OK, "", false}, // It is not there.
		{codes.Unavailable, "OUTCOME_UNKNOWN", true},
		{codes.Unavailable, "", true},
		{codes.Internal, "INTERNAL", true},
		{codes.DeadlineExceeded, "", true},
	} {
		nodes, addresses := clusterOfNodes(t, someCluster, someCluster, someCluster)
		for i, n := range nodes[:2] {
			n.applied = uint64(3 + i)
			n.handle = refuse(failure(t, tt.code, tt.reason, "because"))
			if tt.code == codes.OK {
				addresses[i] = unusedAddr(t)
			}
		}
		nodes[2].applied = 1000
		for _, pin := range [][]string{nil, {"--cluster-id", someCluster}} {
			got := command(t, append(pin, "next", "users|", "--endpoint", strings.Join(addresses, ","))...)
			if got != (outcome{stdout: firstSuccess}) {
				t.Fatalf("%+v: %+v", tt, got)
			}
		}
		for i, n := range nodes {
			for _, r := range n.requests() {
				if id := r.(*idnodev1.GenerateRequest).GetRequestId(); (id.RetrySince != nil) != (tt.retries && i > 0) {
					t.Errorf("%+v: node %d got %v", tt, i, id)
				}
			}
		}
	}
}
