package hilo_test

import (
	"testing"
	"time"

	"github.com/idnode/idnode/hilo"
)

func BenchmarkNextSize(b *testing.B) {
	b.ReportAllocs()
	var size int64
	for b.Loop() {
		size = hilo.NextSize(size, 45*time.Second, true)
	}
}

func BenchmarkCounterNext(b *testing.B) {
	b.ReportAllocs()
	var c hilo.Counter
	for b.Loop() {
		c, _, _ = c.Next(32, 0, 1, hilo.Holder{Who: "A"})
	}
}

func BenchmarkCounterReturn(b *testing.B) {
	b.ReportAllocs()
	c, _, _ := hilo.Counter{}.Next(32, 0, 1, hilo.Holder{Who: "A"})
	c, r, _ := c.Next(32, 0, 2, hilo.Holder{Who: "A"})
	for b.Loop() {
		if _, ok := c.Return(r, r.Low-1, 2, true); !ok {
			b.Fatal("the return was ignored")
		}
	}
}
