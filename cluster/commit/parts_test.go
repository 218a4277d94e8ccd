package commit

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestQueueIsASlice compares the linked list with a plain slice.
func TestQueueIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var model []*waiter
		bytes := func(ws []*waiter) (n int) {
			for _, w := range ws {
				n += cost(w.operation)
			}
			return n
		}
		results := func(ws []*waiter) (n int) {
			for _, w := range ws {
				n += w.resultBound
			}
			return n
		}
		fresh := func(t *rapid.T) *waiter {
			return &waiter{operation: make([]byte, rapid.IntRange(0, 20).Draw(t, "size")), resultBound: rapid.IntRange(0, 20).Draw(t, "result")}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				w := fresh(t)
				q.push(w)
				model = append(model, w)
			},
			"pushFront": func(t *rapid.T) {
				w := fresh(t)
				q.pushFront(w)
				model = slices.Insert(model, 0, w)
			},
			"remove": func(t *rapid.T) {
				if len(model) == 0 {
					t.Skip("empty")
				}
				i := rapid.IntRange(0, len(model)-1).Draw(t, "which")
				q.remove(model[i])
				model = slices.Delete(model, i, i+1)
			},
			"take": func(t *rapid.T) {
				limit, most := rapid.IntRange(1, 5).Draw(t, "limit"), rapid.IntRange(1, 60).Draw(t, "bytes")
				mostResults := rapid.IntRange(1, 60).Draw(t, "results")
				n := 0
				for n < len(model) && n < limit && (n == 0 || bytes(model[:n+1]) <= most && results(model[:n+1]) <= mostResults) {
					n++
				}
				got, size := q.pop(nil, limit, most, mostResults)
				if !slices.Equal(got, model[:n]) || size != bytes(model[:n]) {
					t.Fatalf("took %d of %d bytes, want %d", len(got), size, n)
				}
				model = slices.Delete(model, 0, n)
			},
			"drain": func(t *rapid.T) {
				if got := q.drain(); !slices.Equal(got, model) {
					t.Fatalf("drained %d, want %d", len(got), len(model))
				}
				model = nil
			},
			"": func(t *rapid.T) {
				if q.length != len(model) || q.bytes != bytes(model) {
					t.Fatalf("%d operations of %d bytes, want %d of %d", q.length, q.bytes, len(model), bytes(model))
				}
			},
		})
	})
}

func TestConfigDefaults(t *testing.T) {
	c := Config{}.withDefaults()
	if diff := cmp.Diff([]int{512, 65536, 16384, 16 << 20, 128}, []int{
		c.MaxOperations, c.MaxGroupBytes, c.QueueLength, c.QueueBytes, c.LingerMin,
	}); diff != "" {
		t.Error(diff)
	}
}
