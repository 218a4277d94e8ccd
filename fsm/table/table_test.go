package table

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/idnode/idnode/test/tier"
)

// key is the key of an entry.
type key struct {
	database uint32
	name     string
}

func compareKeys(a, b key) int {
	return cmp.Or(cmp.Compare(a.database, b.database), strings.Compare(a.name, b.name))
}

// sorted returns the entries of a map, in the order of a table.
func sorted(m map[key]int) []Entry[int] {
	var all []Entry[int]
	for _, k := range slices.SortedFunc(maps.Keys(m), compareKeys) {
		all = append(all, Entry[int]{k.database, k.name, m[k]})
	}
	return all
}

// scanned returns the entries that a scan visits.
func scanned(scan func(func(Entry[int]) bool)) []Entry[int] {
	var all []Entry[int]
	scan(func(e Entry[int]) bool {
		all = append(all, e)
		return true
	})
	return all
}

// frozenMap is a frozen table and its expected content.
type frozenMap struct {
	frozen Frozen[int]
	want   map[key]int
}

// machine is a table beside the map it must be like.
type machine struct {
	table  *Table[int]
	want   map[key]int
	frozen []frozenMap
}

func drawKey(t *rapid.T) key {
	name := fmt.Sprint(rapid.IntRange(0, 400).Draw(t, "name"))
	if rapid.IntRange(0, 7).Draw(t, "kind") == 0 {
		name = strings.Repeat("-", rapid.IntRange(inline-3, inline+1).Draw(t, "length")) + name
	}
	return key{database: uint32(rapid.IntRange(0, 2).Draw(t, "database")), name: name}
}

// Put inserts a name, or changes its value.
func (m *machine) Put(t *rapid.T) {
	for range rapid.IntRange(1, 50).Draw(t, "times") {
		k, v := drawKey(t), rapid.Int().Draw(t, "value")
		if ref, ok := m.table.Find(k.database, k.name); ok {
			m.table.Set(ref, v)
		} else if !m.appends(k, v) {
			m.table.Insert(Entry[int]{k.database, k.name, v})
		}
		m.want[k] = v
	}
}

// appends has an entry appended, and checks that this is possible behind all others alone.
func (m *machine) appends(k key, v int) bool {
	done := m.table.Append(Entry[int]{k.database, k.name, v})
	for other := range m.want {
		if done && compareKeys(other, k) > 0 {
			panic("an entry was appended before another one")
		}
	}
	return done
}

// Delete deletes a name that is there.
func (m *machine) Delete(t *rapid.T) {
	for range rapid.IntRange(1, 50).Draw(t, "times") {
		k := drawKey(t)
		ref, ok := m.table.Find(k.database, k.name)
		if _, want := m.want[k]; ok != want {
			t.Fatalf("%v found: %v, want %v", k, ok, want)
		}
		if ok {
			m.table.Delete(ref)
			delete(m.want, k)
		}
	}
}

// maxFrozen is how many frozen tables are looked at after each step.
const maxFrozen = 4

// Freeze keeps the table as it is.
func (m *machine) Freeze(*rapid.T) {
	m.frozen = append(m.frozen[len(m.frozen)/maxFrozen:], frozenMap{m.table.Freeze(), maps.Clone(m.want)})
}

// Page reads a part of the list.
func (m *machine) Page(t *rapid.T) {
	from, limit := drawKey(t), rapid.IntRange(1, 20).Draw(t, "limit")
	var got, want []Entry[int]
	m.table.Ascend(from.database, from.name, func(e Entry[int]) bool {
		got = append(got, e)
		return len(got) < limit
	})
	for _, e := range sorted(m.want) {
		if compareKeys(key{e.Database, e.Name}, from) >= 0 && len(want) < limit {
			want = append(want, e)
		}
	}
	if d := diff.Diff(want, got); d != "" {
		t.Fatalf("from %v: %s", from, d)
	}
}

// check compares table and map.
func (m *machine) check(t *rapid.T) {
	if m.table.Len() != len(m.want) {
		t.Fatalf("%d entries, want %d", m.table.Len(), len(m.want))
	}
	for k, want := range m.want {
		if got, ok := m.table.Get(k.database, k.name); !ok || got != want {
			t.Fatalf("%v is %d, %v; want %d", k, got, ok, want)
		}
	}
	for i, f := range m.frozen {
		if d := diff.Diff(sorted(f.want), scanned(f.frozen.Scan)); d != "" {
			t.Fatalf("frozen table %d: %s", i, d)
		}
	}
}

// TestLikeAMap: after any changes a table has the content of a map, in order, and a frozen table
// stays the same.
func TestLikeAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { newMachine().run(t) })
}

// TestLikeAMapWithTwoHashes is the same when all names have one of two hashes.
func TestLikeAMapWithTwoHashes(t *testing.T) {
	tier.Long(t)
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine()
		m.table.mask = 1
		m.run(t)
	})
}

func newMachine() *machine { return &machine{table: New[int](), want: map[key]int{}} }

func (m *machine) run(t *rapid.T) {
	t.Repeat(map[string]func(*rapid.T){"put": m.Put, "delete": m.Delete, "freeze": m.Freeze, "page": m.Page, "": m.check})
}

// TestReadingBesideChanges: a frozen table is read while its table changes. The
// race detector looks on.
func TestReadingBesideChanges(t *testing.T) {
	table := New[int]()
	for i := range 10_000 {
		table.Insert(Entry[int]{Name: fmt.Sprintf("%05d", i), Value: 0})
	}
	for round := range 20 {
		frozen, done := table.Freeze(), make(chan int)
		go func() {
			sum := 0
			frozen.Scan(func(e Entry[int]) bool { sum += e.Value; return true })
			done <- sum
		}()
		for i := range 10_000 {
			ref, _ := table.Find(0, fmt.Sprintf("%05d", i))
			table.Set(ref, round+1)
		}
		if sum := <-done; sum != round*10_000 {
			t.Fatalf("the values frozen in round %d add up to %d, want %d", round, sum, round*10_000)
		}
	}
}
