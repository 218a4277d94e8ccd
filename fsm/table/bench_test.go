package table

import (
	"fmt"
	"testing"

	"github.com/tidwall/btree"
)

// BenchmarkChange finds a name and changes its value, in the table and in the
// ordered tree that held everything before it.
func BenchmarkChange(b *testing.B) {
	for _, n := range []int{1, 1_000_000} {
		names := make([]string, n)
		for i := range names {
			// In an order of its own, so that neighbours are not used one after the other.
			names[i] = fmt.Sprintf("collections/%07d", i*7919%n)
		}
		b.Run(fmt.Sprintf("table/names=%d", n), func(b *testing.B) { changeTable(b, names) })
		b.Run(fmt.Sprintf("tree/names=%d", n), func(b *testing.B) { changeTree(b, names) })
	}
}

func changeTable(b *testing.B, names []string) {
	t := New[int]()
	for _, name := range names {
		t.Insert(Entry[int]{Name: name})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		ref, ok := t.Find(0, names[i%len(names)])
		if !ok {
			b.Fatal("a name is missing")
		}
		t.Set(ref, i)
		i++
	}
}

func changeTree(b *testing.B, names []string) {
	t := btree.NewBTreeGOptions(func(a, b Entry[int]) bool { return a.Name < b.Name }, btree.Options{NoLocks: true})
	for _, name := range names {
		t.Set(Entry[int]{Name: name})
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		t.Set(Entry[int]{Name: names[i%len(names)], Value: i})
		i++
	}
}

// BenchmarkWarm finds names of a million, as many as come together, one after the
// other and after all of them were read ahead. It counts names.
func BenchmarkWarm(b *testing.B) {
	const n = 1_000_000
	t := New[int]()
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("collections/%07d", i*7919%n)
		t.Insert(Entry[int]{Name: names[i]})
	}
	keys := make([]Key, Ahead)
	for _, ahead := range []bool{false, true} {
		b.Run(fmt.Sprintf("ahead=%v", ahead), func(b *testing.B) {
			i := 0
			for b.Loop() {
				if ahead && i%Ahead == 0 {
					for k := range keys {
						keys[k].Name = append(keys[k].Name[:0], names[(i+k)%n]...)
					}
					t.Warm(keys)
				}
				if _, ok := t.Find(0, names[i%n]); !ok {
					b.Fatal("a name is missing")
				}
				i++
			}
		})
	}
}
