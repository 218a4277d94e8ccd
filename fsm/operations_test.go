package fsm

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

func TestABadOperationFailsAlone(t *testing.T) {
	unknownField := protowire.AppendVarint(protowire.AppendTag(encodeOperation(opNext("x", 1)), 99, protowire.VarintType), 1)
	nested := encodeOperation(opClaimID("x"))
	deep := protowire.AppendBytes(protowire.AppendTag([]byte{0x0a, 2, 'd', 'b'}, protowire.Number(op.KindClaim), protowire.BytesType),
		[]byte{0x98, 0x06, 0x01})
	for name, bad := range map[string][]byte{
		"empty":                    {},
		"no message":               {0xff},
		"only a database":          {0x0a, 2, 'd', 'b'},
		"two kinds":                append(bytes.Clone(encodeOperation(opNext("x", 1))), nested...),
		"unknown field":            unknownField,
		"unknown field in payload": deep,
		"unknown field in next": protowire.AppendBytes(protowire.AppendTag([]byte{0x0a, 2, 'd', 'b'}, protowire.Number(op.KindIdentityNext),
			protowire.BytesType), []byte{0x20, 0x01}),
		"database as number":    {0x08, 1, 0x52, 0},
		"kind as number":        {0x50, 1},
		"group field":           {0x53, 0x54},
		"fixed32 field":         {0x55, 1, 2, 3, 4},
		"cut short":             encodeOperation(opNext("x", 1))[:5],
		"payload cut short":     {0x0a, 2, 'd', 'b', 0x52, 3, 0x0a, 9, 'x'},
		"name is no UTF-8":      {0x0a, 2, 'd', 'b', 0x52, 8, 0x0a, 1, 0xff, 0x10, 1, 0x1a, 1, '/'},
		"claim is no UTF-8":     {0x0a, 2, 'd', 'b', 0x82, 1, 3, 0x0a, 1, 0xff},
		"separator is no UTF-8": {0x0a, 2, 'd', 'b', 0x52, 8, 0x0a, 1, 'x', 0x10, 1, 0x1a, 1, 0xff},
		"database is no UTF-8":  {0x0a, 1, 0xff, 0x52, 8, 0x0a, 1, 'x', 0x10, 1, 0x1a, 1, '/'},
		"short request key":     encodeOperation(keyed(opNext("x", 1), &raftlogv1.RequestKey{Key: []byte("short")})),
		"long request key":      encodeOperation(keyed(opNext("x", 1), &raftlogv1.RequestKey{Key: make([]byte, 17)})),
		"no request key":        encodeOperation(keyed(opNext("x", 1), &raftlogv1.RequestKey{Fingerprint: 1})),
		"two request keys":      append(bytes.Repeat(append([]byte{0x12, 18, 0x0a, 16}, make([]byte, 16)...), 2), 0x52, 5, 0x0a, 1, 'x', 0x10, 1),
		"odd request key":       {0x12, 2, 0x38, 1, 0x52, 5, 0x0a, 1, 'x', 0x10, 1},
		"name too long":         encodeOperation(opNext(strings.Repeat("x", 2001), 1)),
		"tag too long":          encodeOperation(opHiLo(&raftlogv1.HiLoNext{Tag: strings.Repeat("x", 2001)})),
		"id too long":           encodeOperation(opClaimID(strings.Repeat("x", 2026))),
		"member without id":     addOperation(&raftlogv1.MemberAdd{Member: &raftlogv1.Member{Tag: "X"}}),
		"no member":             addOperation(&raftlogv1.MemberAdd{Member: nil}),
		"member of nowhere": addOperation(&raftlogv1.MemberAdd{Member: &raftlogv1.Member{
			Id:          nodeNamed("x"),
			RaftAddress: strings.Repeat("x", 513),
		}}),
		"announcement of nobody": announceOperation(nil),
	} {
		t.Run(name, func(t *testing.T) {
			l := newFormedLog(t)
			good := encodeOperation(opNext("users", 1))
			_, before := l.state.Hash()
			alone := l.apply(raftlog.Group{Operations: [][]byte{bad}})
			if _, after := l.state.Hash(); before != after {
				t.Fatal("the bad operation changed the state")
			}
			if r := l.result(alone[0], 0); r.GetRefusal().GetReason() != raftlogv1.RefusalReason_REFUSAL_REASON_INVALID {
				t.Fatalf("got %v", r)
			}
			g := l.apply(raftlog.Group{Operations: [][]byte{good, bad, good}})[0]
			for i, want := range map[int]int64{0: 1, 2: 2} {
				diff(t, want, l.result(g, i).GetIdentityNext().GetValues()[0].GetFirst())
			}
			if l.result(g, 1).GetRefusal() == nil {
				t.Fatal("the bad operation was not refused")
			}
		})
	}
}

func TestLargestNamesAreTaken(t *testing.T) {
	l := newFormedLog(t)
	name := strings.Repeat("n", 2000)
	l.mustApplied(l.do(opNext(name, 1)))
	l.mustApplied(l.do(opHiLo(&raftlogv1.HiLoNext{Tag: name})))
	l.mustApplied(l.do(opClaimID(strings.Repeat("i", 2025))))
	s := restored(t, snapshotOf(t, l.state))
	_, hash := l.state.Hash()
	if _, again := s.Hash(); again != hash {
		t.Fatal("lost in the snapshot")
	}
	// Names that cannot be are not found, and list nothing.
	long := strings.Repeat("n", 70_000)
	if _, ok := s.HiLo("db", long); ok {
		t.Fatal("found")
	}
	if found := s.HiLos("db", "", long, 5); found != nil {
		t.Fatalf("found %v", found)
	}
	if found := s.HiLos("db", "n", strings.Repeat("n", 1999), 5); len(found) != 1 {
		t.Fatalf("found %v", found)
	}
}

func TestABlockComesInAtMost64Pieces(t *testing.T) {
	l := newFormedLog(t)
	for i := range 200 {
		l.mustApplied(l.do(opClaimID("users/" + itoa(int64(2*i+2)))))
	}
	r := l.mustApplied(l.do(opNext("users", 64)))
	values := r.GetIdentityNext().GetValues()
	if len(values) != 64 || values[63].GetLast() != 127 {
		t.Fatalf("%d pieces, the last one %v", len(values), values[len(values)-1])
	}
	r = l.mustApplied(l.do(opNext("users", 1000)))
	if n := len(r.GetIdentityNext().GetValues()); n > 64 {
		t.Fatalf("%d pieces", n)
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

func TestIdleTimeDoesNotOverflow(t *testing.T) {
	for _, c := range []struct {
		now, then int64
		want      time.Duration
	}{
		{10, 4, 6},
		{4, 10, 0},
		{4, 4, 0},
		{math.MaxInt64, math.MinInt64, math.MaxInt64},
		{math.MinInt64, math.MaxInt64, 0},
		{1, -math.MaxInt64, math.MaxInt64},
	} {
		diff(t, c.want, idleTime(c.now, c.then))
	}
}

// TestARangeEndsWhereItsCallerCanCount: a range that would end above changes nothing.
func TestARangeEndsWhereItsCallerCanCount(t *testing.T) {
	const limit = 1 << 53
	l := newFormedLog(t)
	next := func(limit int64) *raftlogv1.Operation {
		return opHiLo(&raftlogv1.HiLoNext{Tag: "orders", Size: 32, Token: 9, MaxHigh: limit})
	}
	l.mustApplied(l.do(opHiLoSetTo("orders", limit-32, 0)))
	diff(t, int64(limit), l.mustApplied(l.do(next(limit))).GetHiloNext().GetHigh())
	diff(t, raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED, l.mustRefuse("above the limit", next(limit)).GetReason())
	l.mustApplied(l.do(next(0)))
}

// TestEachKindHasAHandlerAndARight: the kinds without a right are those that nodes propose by
// themselves.
func TestEachKindHasAHandlerAndARight(t *testing.T) {
	free := map[op.Kind]bool{
		op.KindBootstrap: true, op.KindMemberAdd: true, op.KindMemberAnnounce: true, op.KindMemberPromote: true, op.KindFormatRaise: true,
		op.KindEtagRaise: true, op.KindEtagCleanStop: true,
	}
	fields := (&raftlogv1.Operation{}).ProtoReflect().Descriptor().Oneofs().ByName("op").Fields()
	for i := range fields.Len() {
		kind := op.Kind(fields.Get(i).Number())
		switch {
		case !handled(kind):
			t.Errorf("%s has no handler", fields.Get(i).Name())
		case (operations[kind].need == 0) != free[kind]:
			t.Errorf("%s needs the right %d", fields.Get(i).Name(), operations[kind].need)
		}
	}
	if handled(0) || handled(op.Kind(len(operations))) {
		t.Error("other numbers have handlers")
	}
}
