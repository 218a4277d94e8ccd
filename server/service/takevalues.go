package service

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/identity"
)

// Field numbers of raftlog.v1: of Operation and RequestKey, and of Result.
const (
	operationDatabase     protowire.Number = 1
	operationRequest      protowire.Number = 2
	operationIdentityNext protowire.Number = 10

	resultLogIndex     protowire.Number = 1
	resultIdentityNext protowire.Number = 10
)

// takeValues is what NextIdentity and Generate have in common. Names are folded.
//
// It is what most calls come down to, so its operation and its result are encoded
// and decoded by hand: that halves the use case's time and its garbage.
type takeValues struct {
	database, name string
	separator      string
	count          int64
	request        *RequestID
	fingerprint    func() fingerprint
}

// take takes values in the name of the caller where that counts.
func (i *identities) take(ctx context.Context, t takeValues) (res NextIdentityResponse, err error) {
	keyed := t.request != nil
	err = i.named(ctx, keyed, keyed, func(principal *string) error {
		answer, err := i.proposer.log.Propose(ctx, appendPrincipal(t.encode(), principal))
		if err == nil {
			res, err = i.taken(t, answer)
		}
		return err
	})
	return res, err
}

// encode returns the operation as raftlog.v1.Operation.
func (t takeValues) encode() []byte {
	separator := docid.Fold(t.separator)
	size := protowire.SizeBytes(len(t.name)) + 2 + protowire.SizeVarint(uint64(t.count)) + 1 + protowire.SizeBytes(len(separator))
	b := make([]byte, 0, size+len(t.database)+64)
	b = appendText(b, operationDatabase, t.database)
	if t.request != nil {
		b = appendRequestKey(b, t)
	}
	b = protowire.AppendTag(b, operationIdentityNext, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	b = appendText(b, 1, t.name)
	b = protowire.AppendTag(b, 2, protowire.VarintType)
	b = protowire.AppendVarint(b, uint64(t.count))
	return appendText(b, 3, separator)
}

// appendPrincipal appends the caller's name to an encoded operation.
func appendPrincipal(operation []byte, principal *string) []byte {
	if principal == nil {
		return operation
	}
	return appendText(operation, operationPrincipal, *principal)
}

// operationPrincipal is the field of raftlog.v1.Operation.
const operationPrincipal protowire.Number = 3

func appendText(b []byte, num protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, num, protowire.BytesType)
	return protowire.AppendString(b, s)
}

// appendRequestKey appends the request id as the field of an operation.
func appendRequestKey(b []byte, t takeValues) []byte {
	var space [40]byte
	key := protowire.AppendTag(space[:0], 1, protowire.BytesType)
	key = protowire.AppendBytes(key, hashRequestID(t.database, t.request.ID))
	if f := t.fingerprint().sum(); f != 0 {
		key = protowire.AppendFixed64(protowire.AppendTag(key, 2, protowire.Fixed64Type), f)
	}
	if t.request.Retry {
		key = protowire.AppendVarint(protowire.AppendTag(key, 3, protowire.VarintType), 1)
	}
	if t.request.Since != 0 {
		key = protowire.AppendVarint(protowire.AppendTag(key, 4, protowire.VarintType), t.request.Since)
	}
	b = protowire.AppendTag(b, operationRequest, protowire.BytesType)
	return protowire.AppendBytes(b, key)
}

// taken returns what an answer says was taken. The error is a *refused or an *Error.
func (i *identities) taken(t takeValues, answer []byte) (NextIdentityResponse, error) {
	res, ok := decodeTaken(answer)
	if !ok {
		result, err := decodeResult(answer)
		if err != nil {
			return NextIdentityResponse{}, err
		}
		return NextIdentityResponse{}, wrongResult("taking values", result)
	}
	if err := checkBlocks(res.Blocks, t.count); err != nil {
		return NextIdentityResponse{}, internal(err)
	}
	i.events.issued(t.database, docid.Identity, t.count)
	return res, nil
}

// decodeTaken decodes a raftlog.v1.Result that holds values. Of anything else, it
// says so: what is rare needs no code of its own.
func decodeTaken(answer []byte) (res NextIdentityResponse, ok bool) {
	for len(answer) > 0 {
		num, typ, n := protowire.ConsumeTag(answer)
		if n < 0 {
			return res, false
		}
		answer = answer[n:]
		switch {
		case num == resultLogIndex && typ == protowire.VarintType:
			res.LogIndex, n = protowire.ConsumeVarint(answer)
		case num == resultIdentityNext && typ == protowire.BytesType && !ok:
			var values []byte
			values, n = protowire.ConsumeBytes(answer)
			res.Blocks, ok = decodeBlocks(values)
		default:
			return res, false
		}
		if n < 0 {
			return res, false
		}
		answer = answer[n:]
	}
	return res, ok
}

// decodeBlocks decodes a raftlog.v1.IdentityNextResult.
func decodeBlocks(data []byte) (blocks []identity.Block, ok bool) {
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 || num != 1 || typ != protowire.BytesType {
			return nil, false
		}
		value, m := protowire.ConsumeBytes(data[n:])
		block, good := decodeBlock(value)
		if m < 0 || !good {
			return nil, false
		}
		blocks = append(blocks, block)
		data = data[n+m:]
	}
	return blocks, true
}

// decodeBlock decodes a raftlog.v1.Values.
func decodeBlock(data []byte) (b identity.Block, ok bool) {
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 || typ != protowire.VarintType {
			return b, false
		}
		v, m := protowire.ConsumeVarint(data[n:])
		switch {
		case m < 0:
			return b, false
		case num == 1:
			b.First = int64(v)
		case num == 2:
			b.Last = int64(v)
		default:
			return b, false
		}
		data = data[n+m:]
	}
	return b, true
}

// checkBlocks makes sure that the values are as many as were asked for: ids are
// built from them in a loop, which a wrong result must not make endless.
func checkBlocks(blocks []identity.Block, count int64) error {
	var sum int64
	for _, b := range blocks {
		// The difference of two int64 may overflow, so the loop bounds it.
		n := b.Last - b.First + 1
		if b.Last < b.First || n < 1 || n > count-sum {
			return fmt.Errorf("the values %d to %d do not fit %d", b.First, b.Last, count)
		}
		sum += n
	}
	if sum != count {
		return fmt.Errorf("%d values came for %d", sum, count)
	}
	return nil
}
