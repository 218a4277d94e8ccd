package etag_test

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/idnode/idnode/etag"
)

func BenchmarkNext(b *testing.B) {
	for _, goroutines := range []int{1, 8} {
		b.Run("goroutines="+strconv.Itoa(goroutines), func(b *testing.B) {
			c := open(b, &fakeStore{disk: &disk{}}, etag.Config{})
			defer func() { _ = c.Close() }()
			b.ReportAllocs()
			if goroutines == 1 {
				for b.Loop() {
					if _, err := c.Next("default"); err != nil {
						b.Fatal(err)
					}
				}
				return
			}
			b.SetParallelism(max(1, goroutines/runtime.GOMAXPROCS(0)))
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, err := c.Next("default"); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

func BenchmarkNextBlock100(b *testing.B) {
	c := open(b, &fakeStore{disk: &disk{}}, etag.Config{})
	defer func() { _ = c.Close() }()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.NextBlock("default", 100); err != nil {
			b.Fatal(err)
		}
	}
}

// TestNextDoesNotAllocate counts within one block, where no durable write is
// due.
func TestNextDoesNotAllocate(t *testing.T) {
	c := openOn(t, &disk{}, etag.Config{BlockSize: 1 << 30})
	next(t, c, "a")
	if allocs := testing.AllocsPerRun(1000, func() { next(t, c, "a") }); allocs != 0 {
		t.Errorf("%v allocations per etag", allocs)
	}
}
