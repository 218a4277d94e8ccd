package identity_test

import (
	"testing"

	"github.com/idnode/idnode/identity"
)

func BenchmarkNext(b *testing.B) {
	b.Run("no-claims", func(b *testing.B) {
		b.ReportAllocs()
		var c identity.Counter
		for b.Loop() {
			c, _, _ = c.Next(1, nil)
		}
	})
	b.Run("claims-above", func(b *testing.B) {
		b.ReportAllocs()
		claimed := claims(1 << 40)
		for b.Loop() {
			_, _, _ = identity.Counter{Last: 7}.Next(1, claimed)
		}
	})
	b.Run("block-over-100000-claims", func(b *testing.B) {
		b.ReportAllocs()
		claimed := everySecond(200_000)
		for b.Loop() {
			_, _, _ = identity.Counter{}.Next(100_000, claimed)
		}
	})
}

func BenchmarkSeed(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		_, _ = identity.Counter{Last: 7}.Seed(100, false, nil)
	}
}
