package grpcapi

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"runtime"
	"sync"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that every other message has
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/exactproto"
	"github.com/idnode/idnode/internal/wire"
	"github.com/idnode/idnode/server/budget"
)

// Numbers of the fields that are read and written without the generated code.
const (
	callsField       wire.Number = 1 // of ExchangeRequest
	correlationField wire.Number = 1 // of Call and of Reply
	repliesField     wire.Number = 1 // of ExchangeResponse
)

// encoded is a message that is on the wire as it is here. A node must be rid of what it cannot take
// up at a small part of the cost of taking it up: of a call that is not let in only the correlation
// number is read, and the replies to all of them are the same bytes except that number.
//
// Its bytes come from a pool, and go back there when they were sent, or by free. Until then they
// are counted for the caller to whom they go. SendMsg takes them over, also if it fails.
type encoded struct {
	buffer  *[]byte
	counted *counted
}

// newEncoded returns an empty message with room for size bytes; to is nil for an uncounted one.
func newEncoded(size int, to *budget.Connection) encoded {
	buffer := pool.Get(size)
	*buffer = (*buffer)[:0]
	if to == nil {
		return encoded{buffer, nil}
	}
	return encoded{buffer, newCounted(buffer, to)}
}

func encode(m proto.Message, to *budget.Connection) (encoded, error) {
	e := newEncoded(proto.Size(m), to)
	b, err := proto.MarshalOptions{UseCachedSize: true}.MarshalAppend(*e.buffer, m)
	if err != nil {
		e.free()
		return encoded{}, err
	}
	*e.buffer = b
	return e, nil
}

// buffers has spare buffers by their size. The pools of gRPC clear every buffer, up to
// a megabyte, before it is written: a quarter of what a refusal costs.
type buffers struct{ spare [12]sync.Pool }

// leastBuffer is above the size of which gRPC does not report that a buffer was sent. Each
// further size is twice the previous.
const leastBuffer = 1152

var pool = &buffers{}

// Get returns a buffer of this length. A buffer larger than all sizes is not pooled.
func (p *buffers) Get(length int) *[]byte {
	size := length
	if i := bits.Len(uint(max(0, length-1) / leastBuffer)); i < len(p.spare) {
		if b, ok := p.spare[i].Get().(*[]byte); ok {
			*b = (*b)[:length]
			return b
		}
		size = leastBuffer << i
	}
	b := make([]byte, length, size)
	return &b
}

func (p *buffers) Put(b *[]byte) {
	if i := bits.Len(uint((cap(*b) - 1) / leastBuffer)); i < len(p.spare) && cap(*b) == leastBuffer<<i {
		p.spare[i].Put(b)
	}
}

// counted is the mem.BufferPool of a counted message. gRPC drops a message without freeing it if
// its stream ends at the same moment; then the garbage collector frees it.
type counted struct{ *charge }

// charge is what was counted; to is nil if nothing is.
type charge struct {
	to    *budget.Connection
	bytes int64
}

func (c *charge) settle() {
	c.to.Sent(c.bytes)
	c.to = nil
}

var spareCounted sync.Pool

func newCounted(b *[]byte, to *budget.Connection) *counted {
	c, ok := spareCounted.Get().(*counted)
	if !ok {
		c = &counted{new(charge)}
		runtime.AddCleanup(c, (*charge).settle, c.charge)
	}
	const rest = 256 // where gRPC keeps what is to go
	c.to, c.bytes = to, int64(cap(*b))+rest
	to.Unsent(c.bytes)
	return c
}

func (c *counted) Get(length int) *[]byte { return pool.Get(length) }

func (c *counted) Put(b *[]byte) {
	c.settle()
	spareCounted.Put(c)
	pool.Put(b)
}

func (e encoded) free() {
	switch {
	case e.counted != nil:
		e.counted.Put(e.buffer)
	case e.buffer != nil:
		pool.Put(e.buffer)
	}
}

// codec passes encoded messages through, and leaves all others to the codec it contains.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2("proto")} }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if m, ok := v.(*encoded); ok {
		var to mem.BufferPool = pool
		if m.counted != nil {
			to = m.counted
		}
		return mem.BufferSlice{mem.NewBuffer(m.buffer, to)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if m, ok := v.(*received); ok {
		data.Ref()
		m.pieces = data
		return nil
	}
	return c.CodecV2.Unmarshal(data, v)
}

// received is a message as it came, in pieces. Nothing is made of it before it is known
// that there is room: very many may be refused at once.
type received struct{ pieces mem.BufferSlice }

func (r received) size() int64 { return int64(r.pieces.Len()) }

// whole returns the message as one buffer, which the caller frees, and frees the others.
func (r received) whole() mem.Buffer {
	defer r.free()
	return r.pieces.MaterializeToBuffer(pool)
}

func (r received) free() { r.pieces.Free() }

// callsIn counts the calls of an encoded ExchangeRequest, up to limit+1. It has nothing but calls.
func callsIn(request []byte, limit int) (calls int, err error) {
	for num, v := range wire.Fields(request) {
		if num == 0 {
			return calls, errNoMessage
		}
		if !isCall(num, v) {
			return calls, exactproto.Unknown(num, (*idnodev1.ExchangeRequest)(nil).ProtoReflect().Descriptor())
		}
		if calls++; calls > limit {
			break
		}
	}
	return calls, nil
}

func isCall(num wire.Number, v wire.Value) bool {
	return num == callsField && v.Type == protowire.BytesType
}

var errNoMessage = errors.New("the bytes are not a protobuf message")

func correlationOf(call []byte) (correlation uint64, err error) {
	for num, v := range wire.Fields(call) {
		switch {
		case num == 0:
			return 0, errNoMessage
		case num == correlationField && v.Type == protowire.VarintType:
			correlation = v.Varint
		}
	}
	return correlation, nil
}

// refusal is the encoded part of a reply that is the same for all calls that were
// not let in for the same reason.
type refusal struct{ reply []byte }

func newRefusal(err error) *refusal {
	b, encodeErr := proto.Marshal(&idnodev1.Reply{Reply: &idnodev1.Reply_Error{Error: errorMessage(err)}})
	if encodeErr != nil {
		panic(encodeErr) // Only text that is no UTF-8 cannot be encoded.
	}
	return &refusal{b}
}

// headBytes is what of a reply comes before its refusal at most.
const headBytes = 1 + binary.MaxVarintLen32 + 1 + binary.MaxVarintLen64

// appendTo appends the reply to the call with this number to an encoded ExchangeResponse.
func (r *refusal) appendTo(response []byte, correlation uint64) []byte {
	response = wire.AppendLength(response, repliesField, wire.SizeVarint(correlationField, correlation)+len(r.reply))
	response = wire.AppendVarint(response, correlationField, correlation)
	return append(response, r.reply...)
}

// size is how many bytes a reply takes in an encoded ExchangeResponse.
func size(reply *idnodev1.Reply) int {
	size := proto.Size(reply)
	return wire.SizeLength(repliesField, size) + size
}

// append adds a reply, of which size was asked before, to an encoded ExchangeResponse.
func (e encoded) append(reply *idnodev1.Reply) (err error) {
	o := proto.MarshalOptions{UseCachedSize: true}
	response := wire.AppendLength(*e.buffer, repliesField, o.Size(reply))
	*e.buffer, err = o.MarshalAppend(response, reply)
	return err
}
