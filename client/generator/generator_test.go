package generator_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/client/generator"
)

// script is a source that gives what it is told to, one answer after the other, and
// fails when there are no more.
type script struct {
	answers []generator.Range
}

var errNoMore = errors.New("no more ranges")

func (s *script) Next(context.Context, generator.Request) (generator.Range, error) {
	if len(s.answers) == 0 {
		return generator.Range{}, errNoMore
	}
	r := s.answers[0]
	s.answers = s.answers[1:]
	return r, nil
}

func (s *script) Return(context.Context, generator.Range, int64) error { return nil }

func closeNow(t *testing.T, g *generator.Generator) {
	t.Helper()
	if err := g.Close(t.Context()); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func TestNextID(t *testing.T) {
	long := string(make([]byte, 2000))
	tests := []struct {
		prefix, tag string
		number      int64
		want        string
	}{
		{"users/", "A", 65, "users/65-A"},
		{"users/", "ZZA", 1, "users/1-ZZA"},
		{"orders/NorthServer/", "", 1, "orders/NorthServer/1"},
		{"", "A", 7, "7-A"},
		{"ü_", "B", math.MaxInt64, "ü_9223372036854775807-B"},
		{long, "A", math.MaxInt64, long + "9223372036854775807-A"},
	}
	for _, tt := range tests {
		r := generator.Range{Low: tt.number, High: tt.number, Prefix: tt.prefix, NodeTag: tt.tag}
		g := newGenerator(t, &script{answers: []generator.Range{r}}, generator.Config{})
		n, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n.String() != tt.want || string(n.Append([]byte("x"))) != "x"+tt.want {
			t.Errorf("String() = %q, Append = %q, want %q", n, n.Append(nil), tt.want)
		}
		if n.Value() != tt.number || n.Prefix() != tt.prefix || n.NodeTag() != tt.tag {
			t.Errorf("the number is %d of %q and %q, want %+v", n.Value(), n.Prefix(), n.NodeTag(), tt)
		}
		if allocs := testing.AllocsPerRun(100, func() { _ = n.String() }); allocs != 1 {
			t.Errorf("String() of %d bytes: %v allocations", len(tt.want), allocs)
		}
		closeNow(t, g)
	}
}

func TestZeroNumber(t *testing.T) {
	var n generator.Number
	if n.String() != "" || n.Append(nil) != nil || n.Prefix() != "" || n.NodeTag() != "" || n.Value() != 0 {
		t.Errorf("the zero Number is not empty: %+v", n)
	}
}

// TestPrefixBelongsToRange: ids go on with the prefix and tag of the range that their
// number is of.
func TestPrefixBelongsToRange(t *testing.T) {
	g := newGenerator(t, &script{answers: []generator.Range{
		{Low: 1, High: 2, Prefix: "users/", NodeTag: "A"},
		{Low: 7, High: 7, Prefix: "users/North/"},
		{Low: math.MaxInt64 - 1, High: math.MaxInt64, Prefix: "users/", NodeTag: "B"},
	}}, generator.Config{})
	got, err := g.NextIDs(t.Context(), 6)
	want := []string{
		"users/1-A", "users/2-A", "users/North/7",
		"users/9223372036854775806-B", "users/9223372036854775807-B",
	}
	if diff := cmp.Diff(want, got); diff != "" || !errors.Is(err, errNoMore) {
		t.Errorf("NextIDs: %v, -want +got:\n%s", err, diff)
	}
	if n, err := g.Next(t.Context()); !errors.Is(err, errNoMore) || n != (generator.Number{}) {
		t.Errorf("Next behind the greatest number: %v, %v", n, err)
	}
	closeNow(t, g)
}

func TestNew(t *testing.T) {
	tests := []struct {
		source generator.RangeSource
		cfg    generator.Config
		ok     bool
	}{
		{&script{}, generator.Config{}, true},
		{&script{}, generator.Config{FirstSize: generator.MaxCount, Timeout: 1}, true},
		{nil, generator.Config{}, false},
		{&script{}, generator.Config{FirstSize: -1}, false},
		{&script{}, generator.Config{FirstSize: generator.MaxCount + 1}, false},
		{&script{}, generator.Config{Timeout: -1}, false},
	}
	for _, tt := range tests {
		if _, err := generator.New(tt.source, tt.cfg); (err == nil) != tt.ok {
			t.Errorf("New(%v, %+v): %v", tt.source, tt.cfg, err)
		}
	}
}

func TestCount(t *testing.T) {
	g := newGenerator(t, &model{}, generator.Config{})
	for _, n := range []int{math.MinInt, -1, 0, generator.MaxCount + 1, math.MaxInt} {
		if ids, err := g.NextIDs(t.Context(), n); !errors.Is(err, generator.ErrCount) || ids != nil {
			t.Errorf("NextIDs(%d): %d ids, %v", n, len(ids), err)
		}
	}
	ids, err := g.NextIDs(t.Context(), 1000)
	if err != nil || len(ids) != 1000 || ids[0] != "users/1-A" || ids[999] != "users/1000-A" {
		t.Errorf("NextIDs(1000): %d ids, %v", len(ids), err)
	}
	closeNow(t, g)
}

// TestRequests: the first request has the chosen size, and each later request has the values
// of the last answer.
func TestRequests(t *testing.T) {
	m := &model{}
	g := newGenerator(t, m, generator.Config{FirstSize: 3})
	for range 40 {
		if _, err := g.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	closeNow(t, g)
	want := []generator.Request{
		{Size: 3},
		{LastSize: 3, LastRangeAt: time.Unix(1, 0), LastMax: 3},
		{LastSize: 32, LastRangeAt: time.Unix(2, 0), LastMax: 35},
	}
	if diff := cmp.Diff(want, m.requests[:3]); diff != "" {
		t.Errorf("requests, -want +got:\n%s", diff)
	}
}

// TestFirstSizeLastsUntilAnswered: a first range that failed is asked for again in
// the same size.
func TestFirstSizeLastsUntilAnswered(t *testing.T) {
	lost := errors.New("lost")
	m := &model{after: func() error { return lost }}
	g := newGenerator(t, m, generator.Config{FirstSize: 5})
	for range 3 {
		if _, err := g.Next(t.Context()); !errors.Is(err, lost) {
			t.Fatalf("Next: %v", err)
		}
	}
	closeNow(t, g)
	want := []generator.Request{{Size: 5}, {Size: 5}, {Size: 5}}
	if diff := cmp.Diff(want, m.requests); diff != "" {
		t.Errorf("requests, -want +got:\n%s", diff)
	}
}

// TestWrongRanges: a range that cannot be right is not used, and the next one is.
func TestWrongRanges(t *testing.T) {
	tests := []generator.Range{
		{},
		{Low: 0, High: 9},
		{Low: -5, High: 5},
		{Low: 10, High: 9},
		{Low: 2, High: 9},
		{Low: 1, High: 1},
		{Low: math.MinInt64, High: math.MaxInt64},
		{Low: 3, High: 9, Granted: -1},
	}
	for _, wrong := range tests {
		t.Run(fmt.Sprintf("%d to %d", wrong.Low, wrong.High), func(t *testing.T) {
			good := generator.Range{Low: 1, High: 2}
			s := &script{answers: []generator.Range{good, wrong, wrong, {Low: 3, High: 3}}}
			g := newGenerator(t, s, generator.Config{})
			var got []int64
			for tries := 0; len(got) < 3 && tries < 10; tries++ {
				switch n, err := g.Next(t.Context()); {
				case err == nil:
					got = append(got, n.Value())
				case !errors.Is(err, generator.ErrRange):
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff([]int64{1, 2, 3}, got); diff != "" {
				t.Errorf("numbers, -want +got:\n%s", diff)
			}
			closeNow(t, g)
		})
	}
}

// TestContextEnded: a number at hand is given, also of the range that was fetched ahead;
// where one would have to be asked for, the context counts.
func TestContextEnded(t *testing.T) { synctest.Test(t, testContextEnded) }

func testContextEnded(t *testing.T) {
	m := &model{size: func() int64 { return 2 }}
	g := newGenerator(t, m, generator.Config{})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := g.Next(ended)
	synctest.Wait()
	if !errors.Is(err, context.Canceled) || m.calls != 0 {
		t.Errorf("Next without a range: %v after %d calls", err, m.calls)
	}
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // The next range is there.
	for want := int64(2); want <= 3; want++ {
		if n, err := g.Next(ended); err != nil || n.Value() != want {
			t.Errorf("Next with a range: %v, %v, want %d", n, err, want)
		}
	}
	closeNow(t, g)
}
