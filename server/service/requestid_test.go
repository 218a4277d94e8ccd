package service

import (
	"context"
	"encoding/hex"
	"errors"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/apierror"
	"github.com/idnode/idnode/test/fsmtest"
)

// TestRetry: a repeated request id returns the first answer and takes nothing, also on another
// node.
func TestRetry(t *testing.T) {
	w := newWorld(t)
	a := newNode(t, w, nil)
	b := newNode(t, w, func(c *Config) {
		c.Tag = func() (string, bool) { return "B", true }
		c.ServerPrefix = "South"
	})
	id := func(retry bool) *idnodev1.RequestId {
		if retry {
			return &idnodev1.RequestId{Id: "r", RetrySince: proto.Uint64(0)}
		}
		return &idnodev1.RequestId{Id: "r"}
	}
	expected := int64(0)
	calls := map[string]func(n node, database string, retry bool) (any, error){
		"generate": func(n node, db string, retry bool) (any, error) {
			res, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{Database: db, Template: "U|", Count: 3, RequestId: id(retry)})
			res.NodeTag = ""
			return res, err
		},
		"generate and claim": func(n node, db string, retry bool) (any, error) {
			res, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{Database: db, Template: "U/x", Claim: true, RequestId: id(retry)})
			res.NodeTag = ""
			return res, err
		},
		"next identity": func(n node, db string, retry bool) (any, error) {
			return n.NextIdentity(context.Background(), &idnodev1.NextIdentityRequest{Database: db, Name: "u", RequestId: id(retry)})
		},
		"seed": func(n node, db string, retry bool) (any, error) {
			return n.SeedIdentity(context.Background(),
				&idnodev1.SeedIdentityRequest{Database: db, Name: "u", Value: proto.Int64(9), Expected: &expected, RequestId: id(retry)})
		},
		"next range": func(n node, db string, retry bool) (any, error) {
			return n.NextRange(context.Background(), &idnodev1.NextRangeRequest{Database: db, Tag: "u", RequestId: id(retry)})
		},
		"return": func(n node, db string, retry bool) (any, error) {
			return n.ReturnRange(context.Background(),
				&idnodev1.ReturnRangeRequest{Database: db, Tag: "u", Low: 1, High: 9, Last: proto.Int64(3), WithoutToken: true, RequestId: id(retry)})
		},
		"set": func(n node, db string, retry bool) (any, error) {
			return n.SetHiLo(context.Background(), &idnodev1.SetHiLoRequest{Database: db, Tag: "u", Max: 7, RequestId: id(retry)})
		},
		"claim": func(n node, db string, retry bool) (any, error) {
			return n.Claim(context.Background(), &idnodev1.ClaimRequest{Database: db, Id: "u/1", RequestId: id(retry)})
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			db := "db-" + hex.EncodeToString([]byte(name))
			first, err := call(a, db, false)
			if err != nil {
				t.Fatal(err)
			}
			w.Advance(1000)
			second, err := call(b, db, true)
			if err != nil {
				t.Fatal(err)
			}
			same(t, second, first)
			// Another request under the same id is refused, in any case of the
			// database.
			_, err = a.NextIdentity(context.Background(),
				&idnodev1.NextIdentityRequest{Database: strings.ToUpper(db), Name: "another", RequestId: id(false)})
			wantError(t, err, apierror.CodeAlreadyExists, apierror.ReasonRequestIDReused, "request_id")
		})
	}
}

// TestRetryOfDelete: a call that succeeded is not checked again.
func TestRetryOfDelete(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	ctx := context.Background()
	if _, err := n.SeedIdentity(ctx, &idnodev1.SeedIdentityRequest{Name: "u", Value: proto.Int64(3)}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Claim(ctx, &idnodev1.ClaimRequest{Id: "u/9"}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		del, err := n.DeleteIdentity(ctx, &idnodev1.DeleteIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{Id: "d"}})
		if err != nil || del.Value != 3 {
			t.Fatalf("%+v %v", del, err)
		}
		if _, err := n.Release(ctx, &idnodev1.ReleaseRequest{Id: "U/9", RequestId: &idnodev1.RequestId{Id: "r"}}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := n.Release(ctx, &idnodev1.ReleaseRequest{Id: "U/9"})
	wantError(t, err, apierror.CodeNotFound, apierror.ReasonClaimNotFound, "id")
}

// TestRetryBeyondTheWindow: a retry whose first try may have been forgotten is
// refused instead of counting twice.
func TestRetryBeyondTheWindow(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	ctx := context.Background()
	if _, err := n.UpdateSetting(ctx, &idnodev1.UpdateSettingRequest{Key: "request-window", Value: proto.Int64(2)}); err != nil {
		t.Fatal(err)
	}
	since := w.State.AppliedIndex()
	for i := range 4 {
		_, err := n.NextIdentity(ctx, &idnodev1.NextIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{Id: "r" + strconv.Itoa(i)}})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := n.NextIdentity(ctx,
		&idnodev1.NextIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{Id: "r0", RetrySince: proto.Uint64(since)}})
	wantError(t, err, apierror.CodeFailedPrecondition, apierror.ReasonRequestIDExpired, "request_id")
	res, err := n.NextIdentity(ctx,
		&idnodev1.NextIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{Id: "r3", RetrySince: proto.Uint64(since)}})
	if err != nil || res.Blocks[0].First != 4 {
		t.Errorf("%+v %v", res, err)
	}
}

// TestFirstTryThatIsHeldUp: it carries the state's index from its arrival, so it does not count
// again once its retry was applied and forgotten.
func TestFirstTryThatIsHeldUp(t *testing.T) {
	calls := map[string]func(n node, id *idnodev1.RequestId) error{
		"next identity": func(n node, id *idnodev1.RequestId) error {
			return callNext(&idnodev1.NextIdentityRequest{Name: "u", RequestId: id})(n)
		},
		"next identities": func(n node, id *idnodev1.RequestId) error {
			_, errs := n.NextIdentities(context.Background(), []*idnodev1.NextIdentityRequest{{Name: "u", RequestId: id}})
			return errs[0]
		},
		"seed": func(n node, id *idnodev1.RequestId) error {
			return callSeed(&idnodev1.SeedIdentityRequest{Name: "u", Value: proto.Int64(9), RequestId: id})(n)
		},
		"delete": func(n node, id *idnodev1.RequestId) error {
			return callDelete(&idnodev1.DeleteIdentityRequest{Name: "d", RequestId: id})(n)
		},
		"range": func(n node, id *idnodev1.RequestId) error {
			return callRange(&idnodev1.NextRangeRequest{Tag: "u", RequestId: id})(n)
		},
		"return": func(n node, id *idnodev1.RequestId) error {
			return callReturn(&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, High: 2, WithoutToken: true, RequestId: id, Last: proto.Int64(0)})(n)
		},
		"set": func(n node, id *idnodev1.RequestId) error {
			return callSet(&idnodev1.SetHiLoRequest{Tag: "u", RequestId: id})(n)
		},
		"generate": func(n node, id *idnodev1.RequestId) error {
			_, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{Template: "u|", RequestId: id})
			return err
		},
		"claim": func(n node, id *idnodev1.RequestId) error {
			_, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{Template: "u/x", Claim: true, RequestId: id})
			return err
		},
		"release": func(n node, id *idnodev1.RequestId) error {
			_, err := n.Release(context.Background(), &idnodev1.ReleaseRequest{Id: "c/1", RequestId: id})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			n, applied := newNode(t, w, nil), make(chan struct{})
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			_, err := n.UpdateSetting(context.Background(), &idnodev1.UpdateSettingRequest{Key: "request-window", Value: proto.Int64(1)})
			must(err)
			must(callSeed(&idnodev1.SeedIdentityRequest{Name: "d", Value: proto.Int64(3)})(n))
			_, err = n.Claim(context.Background(), &idnodev1.ClaimRequest{Id: "c/1"})
			must(err)
			since := w.State.AppliedIndex()

			w.Set(func(f *fsmtest.Faults) { f.Gate = applied })
			late := make(chan error)
			go func() { late <- call(n, &idnodev1.RequestId{Id: "r"}) }()
			for w.Held() == 0 {
				runtime.Gosched()
			}
			w.Set(func(f *fsmtest.Faults) { f.Gate = nil })
			must(call(n, &idnodev1.RequestId{Id: "r", RetrySince: proto.Uint64(since)}))
			must(callNext(&idnodev1.NextIdentityRequest{Name: "other", RequestId: &idnodev1.RequestId{Id: "other"}})(n))
			close(applied)
			wantError(t, <-late, apierror.CodeFailedPrecondition, apierror.ReasonRequestIDExpired, "request_id")
		})
	}
}

// staleRetry is the state of a node that has just started and is behind.
type staleRetry struct {
	State
	behind *atomic.Bool
}

// AppliedIndex implements State.
func (s staleRetry) AppliedIndex() uint64 {
	if s.behind.Load() {
		return 1
	}
	return s.State.AppliedIndex()
}

// TestFirstTryOnANodeThatIsBehind: a call that was never tried before is not refused permanently
// because the node that accepted it has just started.
func TestFirstTryOnANodeThatIsBehind(t *testing.T) {
	w := newWorld(t)
	var behind atomic.Bool
	behind.Store(true)
	n, started := newNode(t, w, nil), newNode(t, w, func(c *Config) {
		c.State, c.CaughtUp = staleRetry{c.State, &behind}, func() bool { return !behind.Load() }
	})
	window := &idnodev1.UpdateSettingRequest{Key: "request-window", Value: proto.Int64(1)}
	if _, err := n.UpdateSetting(context.Background(), window); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"r", "other"} {
		if err := callNext(&idnodev1.NextIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{Id: id}})(n); err != nil {
			t.Fatal(err)
		}
	}
	first := callNext(&idnodev1.NextIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{Id: "new"}})
	wantError(t, first(started), apierror.CodeUnavailable, apierror.ReasonStarting, "")
	for name, call := range map[string]func(node) error{
		"without a request id": callNext(&idnodev1.NextIdentityRequest{Name: "u"}),
		"with its own index": callNext(&idnodev1.NextIdentityRequest{
			Name:      "u",
			RequestId: &idnodev1.RequestId{Id: "r2", RetrySince: proto.Uint64(w.State.AppliedIndex())},
		}),
	} {
		if err := call(started); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	behind.Store(false)
	if err := first(started); err != nil {
		t.Error(err)
	}
}

// TestAnswerLost: the operation counted, the answer did not arrive, and the same call again returns
// the values of the first.
func TestAnswerLost(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, nil)
	req := &idnodev1.NextIdentityRequest{Name: "u", RequestId: &idnodev1.RequestId{Id: "r"}}
	w.Set(func(f *fsmtest.Faults) { f.Fail, f.Lost = outcome.NewUnknown(outcome.LeadershipLost, nil), true })
	_, err := n.NextIdentity(context.Background(), req)
	wantError(t, err, apierror.CodeUnavailable, apierror.ReasonOutcomeUnknown, "")
	w.Set(func(f *fsmtest.Faults) { f.Fail = nil })
	res, err := n.NextIdentity(context.Background(), req)
	if err != nil || res.Blocks[0].First != 1 {
		t.Fatalf("%+v %v", res, err)
	}
}

// TestTheRequestIDOfABlock: only the call for all of its values may have it.
func TestTheRequestIDOfABlock(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	id, none := &idnodev1.RequestId{Id: "block.c0ffee.3"}, int64(0)
	if res, err := n.NextIdentity(context.Background(), &idnodev1.NextIdentityRequest{Name: "u", Count: 3, RequestId: id}); err != nil ||
		res.Blocks[0].Last != 3 {
		t.Fatalf("%+v %v", res, err)
	}
	for name, call := range map[string]func(node) error{
		"one value":    callNext(&idnodev1.NextIdentityRequest{Name: "u", RequestId: id}),
		"two values":   callNext(&idnodev1.NextIdentityRequest{Name: "u", Count: 2, RequestId: id}),
		"a place":      callNext(&idnodev1.NextIdentityRequest{Name: "u", Count: 3, RequestId: &idnodev1.RequestId{Id: id.Id + ".3"}}),
		"no values":    callSeed(&idnodev1.SeedIdentityRequest{Name: "u", Value: &none, RequestId: &idnodev1.RequestId{Id: "block.c0ffee.0"}}),
		"another call": callRange(&idnodev1.NextRangeRequest{Tag: "u", RequestId: id}),
	} {
		t.Run(name, func(t *testing.T) {
			wantError(t, call(n), apierror.CodeInvalidArgument, apierror.ReasonInvalidRequestID, "request_id")
		})
	}
}

// TestRequestKeyFormat pins a part of the replicated state: two nodes of different releases must
// agree on it.
func TestRequestKeyFormat(t *testing.T) {
	n := newNode(t, newWorld(t), nil)
	since := uint64(4)
	request := &idnodev1.RequestId{Id: "x", RetrySince: &since}
	take, err := n.toTake(t.Context(), &idnodev1.NextIdentityRequest{Name: "u", Count: 2, RequestId: request})
	if err != nil {
		t.Fatal(err)
	}
	key := take.Request
	got := hex.EncodeToString(key.Key[:]) + " " + strconv.FormatUint(key.Fingerprint, 16)
	const want = "3c3f437d570386b1be310ee8675d92fa c0a0d7439fe36574"
	if got != want {
		t.Errorf("key and fingerprint %s, want %s", got, want)
	}
	if !key.Retry || key.Since != 4 {
		t.Errorf("marks of the retry: %v", key)
	}
}

// TestRequestKeysDiffer: database and id cannot be confused with each other.
func TestRequestKeysDiffer(t *testing.T) {
	keys := map[[16]byte]string{}
	for _, k := range [][2]string{{"ab", "c"}, {"a", "bc"}, {"abc", "d"}, {"default", "c"}} {
		h := hashRequestID(k[0], k[1])
		if other, ok := keys[h]; ok {
			t.Errorf("%v has the key of %s", k, other)
		}
		keys[h] = k[0]
	}
}

// TestUnknownResult: a result that is not of the operation's kind is a fault of
// ours, not an answer.
func TestUnknownResult(t *testing.T) {
	w := newWorld(t)
	n := newNode(t, w, func(c *Config) { c.Proposer = oddProposer{} })
	calls := []func(node) error{
		callNext(&idnodev1.NextIdentityRequest{Name: "u"}), callSeed(&idnodev1.SeedIdentityRequest{Name: "u", Value: proto.Int64(0)}),
		callDelete(&idnodev1.DeleteIdentityRequest{Name: "u"}), callRange(&idnodev1.NextRangeRequest{Tag: "u"}),
		callReturn(&idnodev1.ReturnRangeRequest{Tag: "u", Low: 1, High: 2, WithoutToken: true, Last: proto.Int64(0)}),
		callSet(&idnodev1.SetHiLoRequest{Tag: "u"}),
	}
	for i, call := range calls {
		var e *apierror.Error
		if err := call(n); !errors.As(err, &e) || e.Code != apierror.CodeInternal {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

// oddProposer answers everything with a member.
type oddProposer struct{ Proposer }

func (oddProposer) Propose(context.Context, []byte) ([]byte, error) {
	return proto.Marshal(&raftlogv1.Result{Result: &raftlogv1.Result_Member{Member: &raftlogv1.MemberResult{}}})
}
