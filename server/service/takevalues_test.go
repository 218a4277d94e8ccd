package service

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestTakeValuesAreEncodedAsProtobufDoes compares with the generated code.
func TestTakeValuesAreEncodedAsProtobufDoes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		v := takeValues{
			Envelope: op.Envelope{Database: strings.Repeat("d", 1+random.IntN(docid.MaxDatabaseBytes))},
			name:     strings.Repeat("n", 1+random.IntN(300)), separator: "/", count: 1 + random.Int64N(1_000_000),
		}
		want := &raftlogv1.Operation{
			Database: v.Database,
			Op:       &raftlogv1.Operation_IdentityNext{IdentityNext: &raftlogv1.IdentityNext{Name: v.name, Count: v.count, Separator: "/"}},
		}
		if random.IntN(2) == 0 {
			v.Request = &op.RequestKey{
				Key: hashRequestID(v.Database, "id"), Fingerprint: newFingerprint("x").sum(),
				Retry: random.IntN(2) == 0, Since: random.Uint64N(3) * math.MaxUint32,
			}
			want.Request = &raftlogv1.RequestKey{
				Key: v.Request.Key[:], Fingerprint: v.Request.Fingerprint, Retry: v.Request.Retry, Since: v.Request.Since,
			}
		}
		// A retry is recognised by its bytes too, so they are the same as well.
		plain, err := proto.MarshalOptions{Deterministic: true}.Marshal(want)
		if got := v.operation(nil); err != nil || string(plain) != string(got) {
			t.Fatalf("%x instead of %x (%v)", got, plain, err)
		}
	}
}
