package grpcapi

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/exactproto"
	"github.com/idnode/idnode/internal/wire"
)

// FuzzCallsIn: what is read without the generated code is what that reads.
func FuzzCallsIn(f *testing.F) {
	for _, calls := range [][]*idnodev1.Call{
		nil,
		{{}},
		{guid(1), nextIdentity(1<<63, "users"), nextIdentity(0, "")},
	} {
		data, err := proto.Marshal(&idnodev1.ExchangeRequest{Calls: calls})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
		f.Add(append(data, 0x10, 1)) // a field that is not known: it is an error
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		req := &idnodev1.ExchangeRequest{}
		if proto.Unmarshal(data, req) != nil {
			return // What is no message in any of its calls is noticed when that call is let in.
		}
		calls, err := callsIn(data, maxCallsPerMessage)
		if err != nil && exactproto.Check(req) != nil {
			return
		}
		if err != nil || calls != min(len(req.GetCalls()), maxCallsPerMessage+1) {
			t.Fatalf("%d of %d calls: %v", calls, len(req.GetCalls()), err)
		}
		i := 0
		for _, v := range wire.Fields(data) {
			want := req.GetCalls()[i].GetCorrelation()
			if correlation, err := correlationOf(v.Bytes); err != nil || correlation != want {
				t.Errorf("correlation %d is %d: %v", want, correlation, err)
			}
			if i++; i == calls {
				break
			}
		}
	})
}

// TestNoMessage: bytes that are no message are found out.
func TestNoMessage(t *testing.T) {
	for _, bad := range [][]byte{{0x0a}, {0x0a, 2, 1}, {0x07}, {0xff}, {0x0a, 1, 0xff}} {
		_, err := callsIn(bad, 1)
		for _, v := range wire.Fields(bad) {
			_, inCall := correlationOf(v.Bytes)
			err = errors.Join(err, inCall)
		}
		if err == nil {
			t.Errorf("% x was taken for a message", bad)
		}
	}
}

// TestRefusalsAndReplies: what is written without the generated code is read by it.
func TestRefusalsAndReplies(t *testing.T) {
	e := newExchanges(1, 1)
	response := newEncoded(10, nil)
	want := &idnodev1.ExchangeResponse{}
	for _, correlation := range []uint64{0, 1, 300, 1 << 63} {
		*response.buffer = e.overloaded.appendTo(*response.buffer, correlation)
		full := &idnodev1.Reply{Correlation: correlation}
		if err := proto.Unmarshal(e.overloaded.reply, full); err != nil || full.GetError().GetMessage() == "" {
			t.Fatalf("%v, %v", full, err)
		}
		full.Correlation = correlation
		reply := &idnodev1.Reply{Correlation: correlation, Reply: &idnodev1.Reply_NextIdentity{
			NextIdentity: &idnodev1.NextIdentityResponse{LogIndex: correlation},
		}}
		before := len(response.bytes())
		bytes := size(reply)
		if err := response.append(reply); err != nil || len(response.bytes()) != before+bytes {
			t.Errorf("%d bytes were said, %d are: %v", bytes, len(response.bytes())-before, err)
		}
		want.Replies = append(want.Replies, full, reply)
	}
	got := &idnodev1.ExchangeResponse{}
	if err := proto.Unmarshal(response.bytes(), got); err != nil {
		t.Fatal(err)
	}
	sameMessage(t, got, want)
	if most := protowire.SizeBytes(len(e.overloaded.reply)) + headBytes; len(e.overloaded.appendTo(nil, 1<<63)) > most {
		t.Errorf("the head of a refusal has more than %d bytes", headBytes)
	}
}

// TestCodec: messages of the generated code go through the codec as before.
func TestCodec(t *testing.T) {
	want := nextIdentity(7, "users")
	data, err := newCodec().Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got := new(idnodev1.Call)
	if err := newCodec().Unmarshal(data, got); err != nil {
		t.Fatal(err)
	}
	sameMessage(t, got, want)
}

// lender is a mem.BufferPool that counts what is not given back.
type lender struct{ lent int }

func (l *lender) Get(length int) *[]byte {
	l.lent++
	b := make([]byte, length)
	return &b
}

func (l *lender) Put(*[]byte) { l.lent-- }

// TestReceived: a message is what came, in however many pieces, and each of them goes back
// once, whether the message is taken up or not.
func TestReceived(t *testing.T) {
	const piece = 2 << 10 // gRPC keeps no smaller ones.
	want := strings.Repeat("a", piece) + strings.Repeat("b", piece) + strings.Repeat("c", piece)
	for pieces := 1; pieces <= 3; pieces++ {
		for _, taken := range []bool{true, false} {
			l := &lender{}
			data := mem.BufferSlice{}
			for i := range pieces {
				b := l.Get(piece)
				copy(*b, want[i*piece:])
				data = append(data, mem.NewBuffer(b, l))
			}
			var got received
			err := newCodec().Unmarshal(data, &got)
			data.Free() // As gRPC does.
			if err != nil || got.size() != int64(pieces*piece) || l.lent != pieces {
				t.Fatalf("%d bytes, %d of %d pieces are lent: %v", got.size(), l.lent, pieces, err)
			}
			if taken {
				whole := got.whole()
				if text := string(whole.ReadOnlyData()); text != want[:pieces*piece] {
					t.Errorf("%d pieces became %q", pieces, text)
				}
				if pieces > 1 && l.lent != 0 {
					t.Error("the pieces are kept beside the whole")
				}
				whole.Free()
			} else {
				got.free()
			}
			if l.lent != 0 {
				t.Errorf("%d of %d pieces are never given back", l.lent, pieces)
			}
		}
	}
}

// BenchmarkRefusal refuses the calls of a message, as a node does of which more is
// asked than it can do.
func BenchmarkRefusal(b *testing.B) {
	req := &idnodev1.ExchangeRequest{}
	for i := range uint64(1024) {
		req.Calls = append(req.Calls, nextIdentity(i, "orders"))
	}
	data, err := proto.Marshal(req)
	if err != nil {
		b.Fatal(err)
	}
	x := &exchange{server: &services{log: &requestLog{observer: quiet{}}, exchanges: newExchanges(0, 0)}, wake: make(chan struct{}, 1)}
	b.ReportAllocs()
	for b.Loop() {
		if err := x.begin(data); err != nil {
			b.Fatal(err)
		}
		out, _ := x.takeReady()
		x.drop(out)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/refusal")
}
