package service

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// instantProposer answers every proposal with the same result, so that only the use case is
// measured.
type instantProposer struct{ answer []byte }

func (p instantProposer) Propose(context.Context, []byte) ([]byte, error) { return p.answer, nil }

func (p instantProposer) ProposeAll(_ context.Context, operations [][]byte) ([][]byte, []error) {
	results := make([][]byte, len(operations))
	for i := range results {
		results[i] = p.answer
	}
	return results, make([]error, len(operations))
}

func benchmarkNode(b *testing.B, result *raftlogv1.Result) node {
	b.Helper()
	answer, err := proto.Marshal(result)
	if err != nil {
		b.Fatal(err)
	}
	return newNode(b, newWorld(b), func(c *Config) { c.Proposer = instantProposer{answer: answer} })
}

func BenchmarkGenerate(b *testing.B) {
	one := &raftlogv1.Result{LogIndex: 1 << 20, Result: &raftlogv1.Result_IdentityNext{
		IdentityNext: &raftlogv1.IdentityNextResult{Values: []*raftlogv1.Values{{First: 1 << 20, Last: 1 << 20}}},
	}}
	requests := []struct {
		name string
		req  *idnodev1.GenerateRequest
	}{
		{"guid", &idnodev1.GenerateRequest{}},
		{"server-side", &idnodev1.GenerateRequest{Template: "users/"}},
		{"identity", &idnodev1.GenerateRequest{Template: "users|"}},
		{"identity with request id", &idnodev1.GenerateRequest{Template: "users|", RequestId: &idnodev1.RequestId{Id: "0123456789abcdef"}}},
		{"semantic", &idnodev1.GenerateRequest{Template: "users/ayende@example.org"}},
		{"claim", &idnodev1.GenerateRequest{Template: "users/ayende@example.org", Claim: true}},
	}
	ctx, cancel := context.WithTimeout(context.Background(), DefaultCallTimeout/2)
	defer cancel()
	n, claimed := benchmarkNode(b, one), benchmarkNode(b, &raftlogv1.Result{LogIndex: 1 << 20})
	for _, r := range requests {
		b.Run(r.name, func(b *testing.B) {
			n := n
			if r.req.GetClaim() {
				n = claimed
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := n.Generate(ctx, r.req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("identity without a deadline", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := n.Generate(context.Background(), &idnodev1.GenerateRequest{Template: "users|"}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkNextIdentity(b *testing.B) {
	n := benchmarkNode(b, &raftlogv1.Result{LogIndex: 1 << 20, Result: &raftlogv1.Result_IdentityNext{
		IdentityNext: &raftlogv1.IdentityNextResult{Values: []*raftlogv1.Values{{First: 1 << 20, Last: 1 << 20}}},
	}})
	req := &idnodev1.NextIdentityRequest{Name: "users", RequestId: &idnodev1.RequestId{Id: "0123456789abcdef"}}
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := n.NextIdentity(b.Context(), req); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("eight together", func(b *testing.B) {
		b.ReportAllocs()
		reqs := slices.Repeat([]*idnodev1.NextIdentityRequest{req}, 8)
		for b.Loop() {
			if _, errs := n.NextIdentities(b.Context(), reqs); errs[7] != nil {
				b.Fatal(errs[7])
			}
		}
	})
}

func BenchmarkNextRange(b *testing.B) {
	n := benchmarkNode(b, &raftlogv1.Result{LogIndex: 9, Result: &raftlogv1.Result_HiloNext{
		HiloNext: &raftlogv1.HiLoNextResult{Low: 1, High: 32, Size: 32, ServerTag: "A", Token: 5},
	}})
	ctx, cancel := context.WithTimeout(context.Background(), DefaultCallTimeout/2)
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := n.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "users"}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRefused is a call with a request id by a caller without the right.
func BenchmarkRefused(b *testing.B) {
	n := benchmarkNode(b, &raftlogv1.Result{})
	table, err := rights.Encode(&rights.Table{Roles: []rights.Role{everything()}})
	if err != nil {
		b.Fatal(err)
	}
	author := "ops"
	n.world.Must(op.Envelope{Principal: &author}, &raftlogv1.RolesSet{Table: table})
	req := &idnodev1.NextIdentityRequest{Name: "users", RequestId: &idnodev1.RequestId{Id: "0123456789abcdef"}}
	ctx := as("stranger")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := n.NextIdentity(ctx, req); err == nil {
			b.Fatal("not refused")
		}
	}
}

// BenchmarkIdentityBesideVerifications measures the 99th percentile of an identity's values
// while another caller verifies a series of 300,000 numbers sixteen times at once, and without.
func BenchmarkIdentityBesideVerifications(b *testing.B) {
	n := newSeriesNode(b, nil)
	for i := 0; i < 300_000; i += 500 {
		keys := make([]string, 500)
		for j := range keys {
			keys[j] = strconv.Itoa(i + j)
		}
		if _, err := n.TakeNumbers(b.Context(), berlin(keys...)); err != nil {
			b.Fatal(err)
		}
	}
	for _, verifications := range []int{0, 16} {
		b.Run(fmt.Sprintf("verifications=%d", verifications), func(b *testing.B) {
			ctx, cancel := context.WithCancel(as("books"))
			var done sync.WaitGroup
			for range verifications {
				done.Go(func() {
					for ctx.Err() == nil {
						_, _ = n.VerifySeries(ctx, allInvoices)
					}
				})
			}
			var took []time.Duration
			for b.Loop() {
				begin := time.Now()
				if _, err := n.NextIdentity(as("shop"), &idnodev1.NextIdentityRequest{Name: "orders"}); err != nil {
					b.Fatal(err)
				}
				took = append(took, time.Since(begin))
			}
			cancel()
			done.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
		})
	}
}
