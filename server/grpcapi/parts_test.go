package grpcapi

import (
	"bytes"
	"runtime"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/apierror"
)

// TestMessagesOfManyParts: a part of a message may take two bytes of it and forty times as
// much when it is decoded. What there is no room for is refused before.
func TestMessagesOfManyParts(t *testing.T) {
	const size = 1 << 20
	repeated := func(field protowire.Number) []byte {
		part := append(protowire.AppendTag(nil, field, protowire.BytesType), 0)
		return bytes.Repeat(part, size/len(part))
	}
	r := serve(t, Config{}, nil)
	for method, message := range map[string][]byte{
		idnodev1.SeriesService_TakeNumbers_FullMethodName:    repeated(3),
		idnodev1.SeriesService_ConfirmNumbers_FullMethodName: repeated(3),
		idnodev1.SeriesService_ResumeSeries_FullMethodName:   repeated(3),
		idnodev1.SeriesService_FormatNumber_FullMethodName:   repeated(4),
		idnodev1.AdminService_MergeCounters_FullMethodName:   repeated(1),
		idnodev1.AdminService_MergeCluster_FullMethodName:    repeated(2),
		idnodev1.ClusterService_SetRoles_FullMethodName: protowire.AppendBytes(protowire.AppendTag(nil, 1,
			protowire.BytesType), repeated(1)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := r.conn.Invoke(bounded(t), method, &encoded{buffer: &message}, new(received), grpc.ForceCodecV2(newCodec()))
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 10*size {
			t.Errorf("%s: %d bytes for a message of %d", method, taken, size)
		}
		if reason := reasonOf(err); reason != apierror.ReasonQuota {
			t.Errorf("%s: %v", method, err)
		}
	}
	resume := func() error {
		request := &idnodev1.ResumeSeriesRequest{}
		for range 1000 {
			request.Books = append(request.Books, &idnodev1.ScopeInBooks{})
		}
		_, err := idnodev1.NewSeriesServiceClient(r.conn).ResumeSeries(bounded(t), request)
		return err
	}
	wantStatus(t, resume(), codes.InvalidArgument, "INVALID_NAME", "series")
	others := r.budget.Open("others")
	defer others.Close()
	others.Unsent(heldBytes - 1000*partBytes)
	wantStatus(t, resume(), codes.ResourceExhausted, "OVERLOADED", "")
}
