package grpcapi

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/server/service"
	"github.com/idnode/idnode/test/fsmtest"
)

// exchangeClient is a caller's end of an Exchange stream.
type exchangeClient = grpc.BidiStreamingClient[idnodev1.ExchangeRequest, idnodev1.ExchangeResponse]

// exchange opens a stream that ends with the test.
func (r *rig) exchange(t testing.TB) exchangeClient {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := r.ids.Exchange(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func nextIdentity(correlation uint64, name string) *idnodev1.Call {
	return &idnodev1.Call{Correlation: correlation, Call: &idnodev1.Call_NextIdentity{
		NextIdentity: &idnodev1.NextIdentityRequest{Name: name},
	}}
}

// TestAnExchangeThatCannotBeDecodedEnds also where calls before were let in: they are
// made, and keep neither the stream nor anybody's place.
func TestAnExchangeThatCannotBeDecodedEnds(t *testing.T) {
	r := serve(t, Config{}, nil)
	broken := &idnodev1.Call{Correlation: 3}
	broken.ProtoReflect().SetUnknown([]byte{4<<3 | 2, 1, 0xFF}) // next_identity, which is no message
	stream, err := r.ids.Exchange(bounded(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{
		nextIdentity(1, "orders"), nextIdentity(2, "orders"),
		broken,
	}}); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.InvalidArgument {
		t.Fatal(err)
	}
	if reply := ask(t, r.exchange(t), nextIdentity(1, "orders")); reply.GetNextIdentity().GetBlocks()[0].GetFirst() != 3 {
		t.Errorf("the calls before were not made: %v", reply)
	}
}

// receive reads messages until there are n replies.
func receive(t testing.TB, stream exchangeClient, n int) []*idnodev1.Reply {
	t.Helper()
	var replies []*idnodev1.Reply
	for len(replies) < n {
		res, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, res.GetReplies()...)
	}
	return replies
}

// ask makes one call and returns its reply.
func ask(t testing.TB, stream exchangeClient, call *idnodev1.Call) *idnodev1.Reply {
	t.Helper()
	if err := stream.Send(&idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{call}}); err != nil {
		t.Fatal(err)
	}
	return receive(t, stream, 1)[0]
}

// TestExchangeAnswersEveryKindOfCall compares whole replies, over gRPC.
// TestEachKindOfCallHasItsMethod: a kind that the API has and an Exchange does not know is
// refused.
func TestEachKindOfCallHasItsMethod(t *testing.T) {
	kinds := callOneof.Fields()
	for i := range kinds.Len() {
		if name := kinds.Get(i).Name(); carriedMethods[name].make == nil {
			t.Errorf("no method has calls of the kind %s", name)
		}
	}
}

func TestExchangeAnswersEveryKindOfCall(t *testing.T) {
	r := serve(t, Config{}, nil)
	stream := r.exchange(t)
	check := func(call *idnodev1.Call, want *idnodev1.Reply) {
		t.Helper()
		want.Correlation = call.GetCorrelation()
		sameMessage(t, ask(t, stream, call), want)
	}
	check(generate(1<<63, &idnodev1.GenerateRequest{Template: "Users|", Count: 2}), &idnodev1.Reply{
		Reply: &idnodev1.Reply_Generate{Generate: &idnodev1.GenerateResponse{
			Ids: []string{"Users/1", "Users/2"}, Blocks: []*idnodev1.IdBlock{{Prefix: "Users/", First: 1, Last: 2}},
			Strategy: idnodev1.Strategy_STRATEGY_IDENTITY, NodeTag: "A", LogIndex: 2,
		}},
	})
	check(generate(1, &idnodev1.GenerateRequest{Template: "users/", Count: 1_000_000, BlocksOnly: true}), &idnodev1.Reply{
		Reply: &idnodev1.Reply_Generate{Generate: &idnodev1.GenerateResponse{
			Blocks:   []*idnodev1.IdBlock{{Prefix: "users/", First: 1, Last: 1_000_000, Width: 19, Suffix: "-A"}},
			Strategy: idnodev1.Strategy_STRATEGY_SERVER_SIDE, NodeTag: "A",
		}},
	})
	check(nextIdentity(0, "users"), &idnodev1.Reply{Reply: &idnodev1.Reply_NextIdentity{
		NextIdentity: &idnodev1.NextIdentityResponse{Blocks: []*idnodev1.ValueBlock{{First: 3, Last: 3}}, LogIndex: 3},
	}})
	check(&idnodev1.Call{Call: &idnodev1.Call_SeedIdentity{SeedIdentity: &idnodev1.SeedIdentityRequest{
		Name: "users", Value: proto.Int64(20), Expected: proto.Int64(3),
	}}}, &idnodev1.Reply{Reply: &idnodev1.Reply_SeedIdentity{SeedIdentity: &idnodev1.SeedIdentityResponse{Value: 20, LogIndex: 4}}})

	reply := ask(t, stream, &idnodev1.Call{Call: &idnodev1.Call_NextRange{NextRange: &idnodev1.NextRangeRequest{Tag: "orders", Size: 5}}})
	ranged := reply.GetNextRange()
	if ranged.GetLow() != 1 || ranged.GetHigh() != 5 || ranged.GetNodeTag() != "A" {
		t.Fatalf("range: %v", reply)
	}
	check(&idnodev1.Call{Call: &idnodev1.Call_ReturnRange{ReturnRange: &idnodev1.ReturnRangeRequest{
		Tag: "orders", Low: 1, High: 5, Last: proto.Int64(3), Token: ranged.GetToken(),
	}}}, &idnodev1.Reply{Reply: &idnodev1.Reply_ReturnRange{
		ReturnRange: &idnodev1.ReturnRangeResponse{Returned: true, Max: 3, LogIndex: 6},
	}})
	check(&idnodev1.Call{Call: &idnodev1.Call_Claim{Claim: &idnodev1.ClaimRequest{Id: "users/me"}}}, &idnodev1.Reply{
		Reply: &idnodev1.Reply_Claim{Claim: &idnodev1.ClaimResponse{Id: "users/me", LogIndex: 7}},
	})
	check(&idnodev1.Call{Call: &idnodev1.Call_Release{Release: &idnodev1.ReleaseRequest{Id: "users/me"}}}, &idnodev1.Reply{
		Reply: &idnodev1.Reply_Release{Release: &idnodev1.ReleaseResponse{LogIndex: 8}},
	})
}

// TestExchangeErrors: bad calls among good ones fail alone, with all that an
// error of a method has, and are logged under that method's name.
func TestExchangeErrors(t *testing.T) {
	r := serve(t, Config{}, nil)
	stream := r.exchange(t)
	bad := []struct {
		call          *idnodev1.Call
		code          codes.Code
		reason, field string
	}{
		{&idnodev1.Call{}, codes.InvalidArgument, "INVALID_REQUEST", "call"},
		{nextIdentity(0, ""), codes.InvalidArgument, "INVALID_NAME", "name"},
		{generate(0, &idnodev1.GenerateRequest{Template: "a/", Count: 1_000_000}), codes.InvalidArgument, "INVALID_COUNT", "count"},
		{generate(0, &idnodev1.GenerateRequest{Template: "taken", Claim: true}), codes.AlreadyExists, "ID_CLAIMED", "template"},
		{&idnodev1.Call{Timeout: &durationpb.Duration{}, Call: guid(0).Call}, codes.InvalidArgument, "INVALID_TIMEOUT", "timeout"},
		{
			&idnodev1.Call{Timeout: &durationpb.Duration{Nanos: -1, Seconds: 1}, Call: guid(0).Call}, codes.InvalidArgument,
			"INVALID_TIMEOUT", "timeout",
		},
		{&idnodev1.Call{Call: &idnodev1.Call_Release{Release: &idnodev1.ReleaseRequest{Id: "nobody"}}}, codes.NotFound, "CLAIM_NOT_FOUND", "id"},
	}
	if _, err := r.ids.Claim(bounded(t), &idnodev1.ClaimRequest{Id: "taken"}); err != nil {
		t.Fatal(err)
	}
	// The first one alone: the log leaves lines out where many calls fail at once.
	ask(t, stream, nextIdentity(99, ""))
	if log := r.log.String(); !strings.Contains(log, "method=/idnode.v1.IdsService/NextIdentity code=InvalidArgument") {
		t.Errorf("log: %s", log)
	}
	req := &idnodev1.ExchangeRequest{}
	for i, b := range bad {
		b.call.Correlation = uint64(i)
		req.Calls = append(req.Calls, b.call, nextIdentity(uint64(100+i), "users"))
	}
	if err := stream.Send(req); err != nil {
		t.Fatal(err)
	}
	var values []int64
	for _, reply := range receive(t, stream, len(req.Calls)) {
		if c := reply.GetCorrelation(); c < 100 {
			want := bad[c]
			wantStatus(t, replyError(reply), want.code, want.reason, want.field)
			continue
		}
		values = append(values, reply.GetNextIdentity().GetBlocks()[0].GetFirst())
	}
	slices.Sort(values)
	if !slices.Equal(values, []int64{1, 2, 3, 4, 5, 6, 7}) {
		t.Errorf("the good calls got %v", values)
	}
}

// TestExchangeOutOfOrder: who waits for the log keeps nobody else waiting.
func TestExchangeOutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t, 10, 1<<30)
		release := p.hold()
		p.call(nextIdentity(1, "users"), guid(2))
		p.call(nextIdentity(3, "users"))
		p.call(guid(4))
		if got := p.replies(); len(got) != 2 || got[2] == nil || got[4] == nil {
			t.Errorf("before the log answers: %v", got)
		}
		release()
		if got := p.replies(); len(got) != 2 || got[1].GetNextIdentity() == nil || got[3].GetNextIdentity() == nil {
			t.Errorf("after it: %v", got)
		}
		p.close()
		if err := <-p.ended; err != nil {
			t.Error(err)
		}
	})
}

// TestExchangeGathersReplies: one message carries all that is ready.
func TestExchangeGathersReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t, 1000, 1<<30)
		release := p.hold()
		for i := range uint64(500) {
			p.call(nextIdentity(i, "users"))
		}
		p.call(guid(1000))
		synctest.Wait() // The sender waits with the GUID until it is taken.
		release()
		synctest.Wait()
		if n := len((<-p.out).GetReplies()); n != 1 {
			t.Errorf("a lone reply came with %d", n)
		}
		if n := len((<-p.out).GetReplies()); n != 500 {
			t.Errorf("%d of 500 replies in one message", n)
		}
	})
}

// TestExchangeSplitsLargeMessages: what a client accepts is not exceeded.
func TestExchangeSplitsLargeMessages(t *testing.T) {
	r := serve(t, Config{}, nil)
	stream := r.exchange(t)
	release := r.hold()
	req := &idnodev1.ExchangeRequest{}
	for i := range uint64(4) {
		req.Calls = append(req.Calls, generate(i, &idnodev1.GenerateRequest{Template: strings.Repeat("x", 79) + "|", Count: 10_000}))
	}
	if err := stream.Send(req); err != nil {
		t.Fatal(err)
	}
	release()
	for _, reply := range receive(t, stream, 4) {
		if n := len(reply.GetGenerate().GetIds()); n != 10_000 {
			t.Errorf("%d ids: %v", n, reply.GetError())
		}
	}
}

// TestExchangeLimits: what is beyond a bound is refused at once, and the bound is
// free again when replies are sent.
func TestExchangeLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t, 2, 1<<30)
		p.server.exchanges.atOnce = 3
		q := p.another(t)
		release := p.hold()
		p.call(nextIdentity(1, "a"), nextIdentity(1, "a"), nextIdentity(2, "a"), nextIdentity(3, "a"), guid(4))
		got := p.replies()
		wantStatus(t, replyError(got[1]), codes.InvalidArgument, "INVALID_CORRELATION", "correlation")
		for _, c := range []uint64{3, 4} {
			if retry := wantStatus(t, replyError(got[c]), codes.ResourceExhausted, "OVERLOADED", ""); retry == 0 {
				t.Error("no pause is named")
			}
		}
		q.call(nextIdentity(1, "a"), nextIdentity(2, "a"))
		got = q.replies()
		wantStatus(t, replyError(got[2]), codes.ResourceExhausted, "OVERLOADED", "")
		release()
		if got := p.replies(); len(got) != 2 {
			t.Errorf("%d calls of 2 were answered", len(got))
		}
		if got := q.replies(); len(got) != 1 {
			t.Errorf("%d calls of 1 were answered", len(got))
		}
		if held := p.budget.Held(); held != 0 {
			t.Errorf("%d bytes are held", held)
		}
		p.call(nextIdentity(1, "a"), nextIdentity(2, "a"))
		if got := p.replies(); got[1].GetNextIdentity() == nil || got[2].GetNextIdentity() == nil {
			t.Errorf("afterwards: %v", got)
		}
	})
}

// TestExchangesAtOnce: streams share the calls that may run at once, and a call has
// made room for another when it has its reply, also if nobody reads that.
func TestExchangesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t, 10, 1<<30)
		p.server.exchanges.atOnce = 3
		q := p.another(t)
		release := p.hold()
		p.call(nextIdentity(1, "a"), nextIdentity(2, "a"))
		synctest.Wait() // They come first.
		q.call(nextIdentity(1, "a"), nextIdentity(2, "a"))
		wantStatus(t, replyError(q.replies()[2]), codes.ResourceExhausted, "OVERLOADED", "")
		release()
		synctest.Wait() // The replies are there, and nobody takes them.
		if running := p.server.exchanges.running.Load(); running != 0 {
			t.Errorf("%d calls run", running)
		}
		q.call(nextIdentity(3, "a"), nextIdentity(4, "a"), nextIdentity(5, "a"))
		if got := q.replies(); len(got) != 4 || got[5].GetNextIdentity() == nil {
			t.Errorf("afterwards: %v", got)
		}
	})
}

// TestExchangeMalformed: a message that is none ends the stream, and leaves nothing
// behind.
func TestExchangeMalformed(t *testing.T) {
	for _, data := range [][]byte{{0x0a, 2, 1}, {0x0a, 2, 0x22, 5}} {
		x := &exchange{
			server:   &services{log: &requestLog{observer: quiet{}}, exchanges: newExchanges(10, 10)},
			underWay: make(map[uint64]int64), wake: make(chan struct{}, 1),
		}
		if err := x.begin(data); status.Code(err) != codes.InvalidArgument {
			t.Errorf("% x: %v", data, err)
		}
		if running := x.server.exchanges.running.Load(); running != 0 {
			t.Errorf("% x: %d calls run", data, running)
		}
	}
}

// TestExchangeBoundsText: ids as text are bounded before anything is taken.
func TestExchangeBoundsText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t, 100, 4*service.MaxIDsBytes+100*callBytes)
		release := p.hold()
		full := &idnodev1.GenerateRequest{Template: strings.Repeat("x", 79) + "|", Count: 10_000}
		for i := range uint64(6) {
			p.call(generate(i, full))
		}
		got := p.replies()
		if len(got) != 2 {
			t.Errorf("%d calls were refused", len(got))
		}
		for _, r := range got {
			wantStatus(t, replyError(r), codes.ResourceExhausted, "OVERLOADED", "")
		}
		release()
		if got := p.replies(); len(got) != 4 {
			t.Errorf("%d calls were answered", len(got))
		}
	})
}

// TestExchangeTooManyCallsInAMessage ends the stream; what was in flight is
// answered first.
func TestExchangeTooManyCallsInAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t, 10, 1<<30)
		release := p.hold()
		p.call(nextIdentity(1, "a"))
		p.call(make([]*idnodev1.Call, maxCallsPerMessage+1)...)
		release()
		if got := p.replies(); got[1].GetNextIdentity() == nil {
			t.Errorf("the call in flight: %v", got)
		}
		wantStatus(t, <-p.ended, codes.InvalidArgument, "INVALID_COUNT", "calls")
	})
}

// TestExchangeSlowReader: a caller that does not read is not read from any more,
// and what it makes the node keep is bounded.
func TestExchangeSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perStream = 100
		p := newPipe(t, perStream, 16<<20)
		sent := 0
		message := make([]*idnodev1.Call, 1000)
		for i := range message {
			message[i] = guid(uint64(i))
		}
		for open := true; open; {
			synctest.Wait()
			select {
			case p.in <- &idnodev1.ExchangeRequest{Calls: message}:
				sent += len(message)
			default:
				open = false
			}
		}
		if sent > 3*maxCallsPerMessage {
			t.Errorf("%d calls were read from a caller that does not read", sent)
		}
		if held := p.budget.Held(); held == 0 || held > 4*maxReplyBytes {
			t.Errorf("%d bytes are held", held)
		}
		// Every one of them has a reply; many share a correlation number.
		n := 0
		for open := true; open; {
			synctest.Wait()
			select {
			case res := <-p.out:
				n += len(res.GetReplies())
			default:
				open = false
			}
		}
		if n != sent {
			t.Errorf("%d replies to %d calls", n, sent)
		}
		p.call(guid(7))
		if got := p.replies(); got[7].GetGenerate() == nil {
			t.Errorf("afterwards: %v", got)
		}
	})
}

// TestExchangeCancel: a caller that goes away leaves nothing behind.
func TestExchangeCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t, 10, 1<<30)
		p.hold()
		p.call(nextIdentity(1, "a"), nextIdentity(2, "a"))
		synctest.Wait()
		p.cancel()
		if err := <-p.ended; status.Code(err) != codes.Canceled {
			t.Error(err)
		}
		if held := p.budget.Held(); held != 0 {
			t.Errorf("%d bytes are held", held)
		}
	})
}

// TestExchangeHalfClose answers everything, over gRPC, before the stream ends.
func TestExchangeHalfClose(t *testing.T) {
	r := serve(t, Config{}, nil)
	stream := r.exchange(t)
	release := r.hold()
	req := &idnodev1.ExchangeRequest{}
	for i := range uint64(300) {
		req.Calls = append(req.Calls, nextIdentity(i, "users"))
	}
	if err := errors.Join(stream.Send(req), stream.Send(req), stream.CloseSend()); err != nil {
		t.Fatal(err)
	}
	release()
	// The second message may find the first one's calls in flight, or not.
	receive(t, stream, 600)
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the end: %v", err)
	}
}

// TestExchangeStop: a node that stops answers what is in flight, refuses what is
// new, and is not held up by streams that stay open.
func TestExchangeStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t, 10, 1<<30)
		release := p.hold()
		p.call(nextIdentity(1, "a"))
		synctest.Wait()
		drained := make(chan error, 1)
		go func() { drained <- p.server.Service.Drain(t.Context()) }()
		time.Sleep(time.Millisecond) // The bubble's own time: Drain waits in steps.
		p.call(guid(2), nextIdentity(3, "a"))
		got := p.replies()
		wantStatus(t, replyError(got[2]), codes.Unavailable, "STOPPING", "")
		wantStatus(t, replyError(got[3]), codes.Unavailable, "STOPPING", "")
		release()
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if got := p.replies(); got[1].GetNextIdentity() == nil {
			t.Errorf("the call in flight: %v", got)
		}
	})
}

// TestExchangePanic costs one call.
func TestExchangePanic(t *testing.T) {
	r := serve(t, Config{}, nil)
	r.Set(func(f *fsmtest.Faults) { f.Boom = true })
	stream := r.exchange(t)
	if err := stream.Send(&idnodev1.ExchangeRequest{Calls: []*idnodev1.Call{nextIdentity(1, "a"), guid(2)}}); err != nil {
		t.Fatal(err)
	}
	for _, reply := range receive(t, stream, 2) {
		if reply.GetCorrelation() == 2 {
			if reply.GetGenerate() == nil {
				t.Errorf("the other call: %v", reply)
			}
			continue
		}
		wantStatus(t, replyError(reply), codes.Internal, "INTERNAL", "")
	}
	if log := r.log.String(); !strings.Contains(log, "boom") {
		t.Errorf("log: %s", log)
	}
	r.Set(func(f *fsmtest.Faults) { f.Boom = false })
	if reply := ask(t, stream, nextIdentity(1, "a")); reply.GetNextIdentity() == nil {
		t.Errorf("afterwards: %v", reply)
	}
}

// TestExchangeDeadlines: a call ends by its own timeout, and the others go on.
func TestExchangeDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipe(t, 10, 1<<30)
		release := p.hold()
		begin := time.Now()
		short := nextIdentity(1, "a")
		short.Timeout = durationpb.New(time.Second)
		p.call(short, nextIdentity(2, "a"))
		first := <-p.out
		if took := time.Since(begin); took != time.Second || len(first.GetReplies()) != 1 || first.GetReplies()[0].GetCorrelation() != 1 {
			t.Errorf("after %s: %v", took, first)
		}
		wantStatus(t, replyError(first.GetReplies()[0]), codes.Aborted, "OUTCOME_UNKNOWN", "")
		release()
		if other := <-p.out; other.GetReplies()[0].GetNextIdentity() == nil {
			t.Errorf("the other call: %v", other)
		}
	})
}

// TestExchangeWithoutQuorum: an error of the log reaches each caller.
func TestExchangeWithoutQuorum(t *testing.T) {
	r := serve(t, Config{}, nil)
	r.Set(func(f *fsmtest.Faults) { f.Fail = outcome.NewNotApplied(outcome.NoQuorum, nil) })
	stream := r.exchange(t)
	wantStatus(t, replyError(ask(t, stream, nextIdentity(1, "a"))), codes.Unavailable, "NO_QUORUM", "")
	if reply := ask(t, stream, guid(2)); reply.GetGenerate() == nil {
		t.Errorf("a GUID: %v", reply)
	}
}
