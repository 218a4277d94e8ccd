package service

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/identity"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestTakeValuesAreEncodedAsProtobufDoes compares with the generated code.
func TestTakeValuesAreEncodedAsProtobufDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		v := takeValues{
			database: strings.Repeat("d", 1+random.IntN(docid.MaxDatabaseBytes)), name: strings.Repeat("n", 1+random.IntN(300)),
			separator: "/", count: 1 + random.Int64N(1_000_000), fingerprint: func() fingerprint { return newFingerprint("x") },
		}
		if random.IntN(2) == 0 {
			v.request = &RequestID{ID: "id", Retry: random.IntN(2) == 0, Since: random.Uint64N(3) * math.MaxUint32}
		}
		want := &raftlogv1.Operation{
			Database: v.database, Request: requestKey(v.database, v.request, v.fingerprint),
			Op: &raftlogv1.Operation_IdentityNext{IdentityNext: &raftlogv1.IdentityNext{Name: v.name, Count: v.count, Separator: "/"}},
		}
		got := new(raftlogv1.Operation)
		if err := proto.Unmarshal(v.encode(), got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Fatal(diff)
		}
		// A retry is recognised by its bytes too, so they are the same as well.
		plain, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
		if err != nil || string(plain) != string(v.encode()) {
			t.Fatalf("%x instead of %x (%v)", v.encode(), plain, err)
		}
	}
}

func TestDecodeTaken(t *testing.T) {
	values := func(v ...*raftlogv1.Values) *raftlogv1.Result {
		return &raftlogv1.Result{LogIndex: 7, Result: &raftlogv1.Result_IdentityNext{IdentityNext: &raftlogv1.IdentityNextResult{Values: v}}}
	}
	tests := []struct {
		name   string
		result *raftlogv1.Result
		want   []identity.Block
		ok     bool
	}{
		{"one block", values(&raftlogv1.Values{First: 1, Last: 5}), []identity.Block{{First: 1, Last: 5}}, true},
		{
			"blocks", values(&raftlogv1.Values{First: 1, Last: 1}, &raftlogv1.Values{First: math.MaxInt64, Last: math.MaxInt64}),
			[]identity.Block{{First: 1, Last: 1}, {First: math.MaxInt64, Last: math.MaxInt64}},
			true,
		},
		{"negative numbers", values(&raftlogv1.Values{First: -1, Last: math.MinInt64}), []identity.Block{{First: -1, Last: math.MinInt64}}, true},
		{"a refusal", &raftlogv1.Result{LogIndex: 7, Refusal: &raftlogv1.Refusal{Detail: "no"}}, nil, false},
		{"another result", &raftlogv1.Result{LogIndex: 7, Result: &raftlogv1.Result_Value{Value: 1}}, nil, false},
		{"nothing", &raftlogv1.Result{}, nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			data, err := proto.Marshal(test.result)
			if err != nil {
				t.Fatal(err)
			}
			res, ok := decodeTaken(data)
			if ok != test.ok || test.ok && (res.LogIndex != 7 || !cmp.Equal(test.want, res.Blocks)) {
				t.Errorf("got %+v, %t", res, ok)
			}
		})
	}
}

// FuzzDecodeTaken: what the decoder takes for values, protobuf decodes to the same.
func FuzzDecodeTaken(f *testing.F) {
	f.Add([]byte{8, 7, 82, 6, 10, 4, 8, 1, 16, 5})
	f.Add([]byte{8, 7, 18, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		res, ok := decodeTaken(data)
		if !ok {
			return
		}
		want := new(raftlogv1.Result)
		if err := proto.Unmarshal(data, want); err != nil {
			t.Fatalf("protobuf says %v", err)
		}
		values := want.GetIdentityNext().GetValues()
		if want.GetLogIndex() != res.LogIndex || len(values) != len(res.Blocks) || want.GetRefusal() != nil {
			t.Fatalf("%v instead of %v", res, want)
		}
		for i, v := range values {
			if res.Blocks[i] != (identity.Block{First: v.GetFirst(), Last: v.GetLast()}) {
				t.Fatalf("%v instead of %v", res, want)
			}
		}
	})
}
