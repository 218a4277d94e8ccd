package grpcapi

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
)

// FuzzExchange: whatever a message holds, each of its calls has one reply, of its
// own kind or an error with a code.
func FuzzExchange(f *testing.F) {
	for _, calls := range [][]*idnodev1.Call{
		nil,
		{guid(1), guid(1), nextIdentity(2, "users|"), nextIdentity(3, "")},
		{{}, {Correlation: 1 << 63, Timeout: durationpb.New(1)}},
		{
			generate(1, &idnodev1.GenerateRequest{Template: "users/", Count: 5}),
			generate(2, &idnodev1.GenerateRequest{Template: "u", Claim: true}),
		},
		{{Call: &idnodev1.Call_SeedIdentity{SeedIdentity: &idnodev1.SeedIdentityRequest{Name: "a", Value: proto.Int64(-1), Force: true}}}},
		{{Call: &idnodev1.Call_NextRange{NextRange: &idnodev1.NextRangeRequest{Tag: "a", Size: 1 << 40}}}},
		{{Call: &idnodev1.Call_ReturnRange{ReturnRange: &idnodev1.ReturnRangeRequest{Tag: "a", Token: "01"}}}},
		{{Call: &idnodev1.Call_Claim{Claim: &idnodev1.ClaimRequest{Id: "a/1"}}}, {Call: &idnodev1.Call_Release{}}},
	} {
		data, err := proto.Marshal(&idnodev1.ExchangeRequest{Calls: calls})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		req := &idnodev1.ExchangeRequest{}
		if proto.Unmarshal(data, req) != nil || len(req.GetCalls()) > maxCallsPerMessage {
			return
		}
		p := newPipe(t, 100, 1<<30)
		go func() {
			p.call(req.GetCalls()...)
			p.close()
		}()
		left := make(map[uint64]int)
		for _, call := range req.GetCalls() {
			left[call.GetCorrelation()]++
		}
		for range len(req.GetCalls()) {
			takeOne(t, p, left)
			if len(left) == 0 {
				break
			}
		}
		if err := <-p.ended; err != nil || len(left) > 0 {
			t.Fatalf("%v; without a reply: %v", err, left)
		}
	})
}

// takeOne takes one message of replies and strikes them off.
func takeOne(t *testing.T, p *pipe, left map[uint64]int) {
	t.Helper()
	select {
	case res := <-p.out:
		if len(res.GetReplies()) == 0 {
			t.Fatal("a message without replies")
		}
		for _, reply := range res.GetReplies() {
			strike(t, left, reply)
		}
		if _, err := proto.Marshal(res); err != nil {
			t.Fatal(err)
		}
	case <-p.ctx.Done():
		t.Fatalf("the stream ended without replies to %v", left)
	}
}

func strike(t *testing.T, left map[uint64]int, reply *idnodev1.Reply) {
	t.Helper()
	c := reply.GetCorrelation()
	if left[c] == 0 {
		t.Fatalf("a reply to no call: %v", reply)
	}
	if left[c]--; left[c] == 0 {
		delete(left, c)
	}
	if reply.GetReply() == nil || reply.GetError() != nil && reply.GetError().GetCode() == 0 {
		t.Fatalf("a reply that says nothing: %v", reply)
	}
}
