package grpcapi

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
)

// BenchmarkExchange takes identities over one stream, with so many calls in each
// message, beside unary calls of one caller and of 64. A round is one message
// there and all its replies back.
func BenchmarkExchange(b *testing.B) {
	for _, size := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("stream/%d", size), func(b *testing.B) {
			r := serve(b, Config{Logger: slog.New(slog.DiscardHandler)}, nil)
			r.answerAlike(b)
			stream := r.exchange(b)
			req := &idnodev1.ExchangeRequest{Calls: make([]*idnodev1.Call, size)}
			for i := range req.Calls {
				req.Calls[i] = nextIdentity(uint64(i), "users")
			}
			b.ReportAllocs()
			ids := 0
			for b.Loop() {
				if err := stream.Send(req); err != nil {
					b.Fatal(err)
				}
				ids += len(receive(b, stream, size))
			}
			b.ReportMetric(float64(ids)/b.Elapsed().Seconds(), "ids/s")
		})
	}
	b.Run("unary/1", func(b *testing.B) {
		r := serve(b, Config{Logger: slog.New(slog.DiscardHandler)}, nil)
		r.answerAlike(b)
		b.ReportAllocs()
		for b.Loop() {
			r.unary(b)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ids/s")
	})
	b.Run("unary/64", func(b *testing.B) {
		r := serve(b, Config{Logger: slog.New(slog.DiscardHandler)}, nil)
		r.answerAlike(b)
		b.ReportAllocs()
		b.SetParallelism(32)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				r.unary(b)
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ids/s")
	})
}

// answerAlike lets the log answer every later proposal as it answers the next one,
// so that what is measured is not the log.
func (r *rig) answerAlike(b *testing.B) {
	b.Helper()
	r.unary(b)
	r.set(func(b *backend) { b.alike = b.last })
}

func (r *rig) unary(b *testing.B) {
	if _, err := r.ids.NextIdentity(b.Context(), &idnodev1.NextIdentityRequest{Name: "users"}); err != nil {
		b.Error(err)
	}
}

func BenchmarkStreamServerSideIds(b *testing.B) {
	for _, size := range []int64{1000, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := serve(b, Config{Logger: slog.New(slog.DiscardHandler)}, nil)
			stream, err := r.ids.StreamServerSideIds(b.Context(), &idnodev1.StreamServerSideIdsRequest{Template: "users/", BlockSize: size})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := stream.Recv(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*float64(size)/b.Elapsed().Seconds(), "ids/s")
		})
	}
}
