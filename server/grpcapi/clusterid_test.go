package grpcapi

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/idnode/idnode/server/apierror"
)

// TestCallsForAnotherCluster: each method of the port refuses a call whose metadata names another
// cluster, and does nothing.
func TestCallsForAnotherCluster(t *testing.T) {
	own := "a0"
	var server *grpc.Server
	r := serve(t, Config{ClusterID: func() string { return own }}, func(s *grpc.Server) { server = s })
	call := func(method string, ids ...string) error {
		ctx := metadata.NewOutgoingContext(bounded(t), metadata.MD{"idnode-cluster-id": ids})
		stream, err := r.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
		if err != nil {
			return err
		}
		_ = stream.SendMsg(&emptypb.Empty{}) // The answer says why.
		_ = stream.CloseSend()
		return stream.RecvMsg(&emptypb.Empty{})
	}
	_, before := r.State.Hash()
	methods := 0
	for name, info := range server.GetServiceInfo() {
		for _, m := range info.Methods {
			method := "/" + name + "/" + m.Name
			for _, ids := range [][]string{{"b1"}, {""}, {"A0"}, {"a0", "b1"}} {
				wantStatus(t, call(method, ids...), codes.FailedPrecondition, apierror.ReasonOtherCluster, "")
			}
			methods++
		}
	}
	if _, after := r.State.Hash(); after != before || methods < 50 {
		t.Errorf("%d methods, state %x before and %x after", methods, before, after)
	}
	const status = "/idnode.v1.ClusterService/GetStatus"
	for _, ids := range [][]string{nil, {"a0"}, {"a0", "a0"}} {
		if err := call(status, ids...); err != nil {
			t.Errorf("with %q: %v", ids, err)
		}
	}
	own = ""
	if retry := wantStatus(t, call(status, "a0"), codes.Unavailable, apierror.ReasonStarting, ""); retry == 0 {
		t.Error("a node without a cluster says no pause")
	}
	if err := call(status); err != nil {
		t.Errorf("a node without a cluster: %v", err)
	}
}
