package history_test

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/test/history"
)

// full is an Op with every field set.
func full() history.Op {
	expected := int64(0)
	return history.Op{
		Kind: history.Next, Client: 3, Node: "A", Database: "shop", Name: "a\"b\\ü\n", Request: "r-1", Call: 5, Return: 9,
		Outcome: history.OK, Code: "NO_QUORUM", Count: 2, Value: math.MinInt64, Expected: &expected, Force: true, Forget: true, Stale: true,
		Low: 1, High: 32, Last: 7, ID: "users/ayende", Blocks: []history.Block{{First: 1, Last: 2}, {First: -4, Last: math.MaxInt64}},
		Result: math.MaxInt64, Returned: true, Tag: "ZA", Index: math.MaxUint64, Hash: 1 << 63,
	}
}

func TestLines(t *testing.T) {
	simple := history.Op{
		Kind: history.Next, Client: 3, Node: "A", Name: "orders", Call: 0, Return: 12, Outcome: history.OK,
		Blocks: []history.Block{{First: 7, Last: 7}},
	}
	pending := history.Op{Kind: history.Next, Call: 4, Return: history.Never, Outcome: history.Unknown}
	ops := []history.Op{full(), simple, pending}
	var file []byte
	for i := range ops {
		file = append(ops[i].AppendJSON(file), '\n')
		var standard history.Op
		if err := json.Unmarshal(ops[i].AppendJSON(nil), &standard); err != nil {
			t.Error(err)
		}
	}
	if want := `{"kind":"next","client":3,"node":"A","name":"orders","call":0,"return":12,"outcome":"ok","blocks":[[7,7]]}`; !strings.Contains(string(file), want) {
		t.Errorf("no line %s in\n%s", want, file)
	}
	if diff := cmp.Diff(ops, read(t, file)); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

// read reads a history that is right.
func read(t *testing.T, file []byte) []history.Op {
	t.Helper()
	var ops []history.Op
	for op, err := range history.Read(bytes.NewReader(file)) {
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, op)
	}
	return ops
}

// What is no history is no short history.
func TestReadRefuses(t *testing.T) {
	good := `{"kind":"next","call":0,"return":1,"outcome":"ok"}`
	for _, bad := range []string{"", "null x", `{"kind":"next"`, good + good, `{"kin":"next"}`, `{"call":1.5}`, `{"call":"1"}`, `{"call":99999999999999999999}`, good + "x"} {
		n := 0
		var last error
		for _, err := range history.Read(strings.NewReader(good + "\n" + bad + "\n" + good + "\n")) {
			n, last = n+1, err
		}
		if n != 2 || last == nil || !strings.Contains(last.Error(), "line 2") {
			t.Errorf("%q: %d operations, then %v", bad, n, last)
		}
	}
}

// A line that another program wrote is read the same.
func TestReadOtherForms(t *testing.T) {
	want := history.Op{Kind: history.Next, Name: "ä", Call: 10, Return: 1, Outcome: history.OK, Blocks: []history.Block{{First: 1, Last: 2}}}
	got := read(t, []byte(` { "name" : "\u00e4", "outcome":"ok", "kind":"next","blocks":[ [1, 2] ], "call":10, "return":1 } `+"\n"))
	if diff := cmp.Diff([]history.Op{want}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var file bytes.Buffer
		watched := 0
		rec := history.NewRecorder(&file, func(*history.Op) { watched++ })
		slow := rec.Begin(history.Op{Kind: history.Next, Name: "slow"})
		time.Sleep(5 * time.Millisecond)
		p := rec.Begin(history.Op{Kind: history.Next, Name: "orders"})
		time.Sleep(2 * time.Millisecond)
		p.Blocks = []history.Block{{First: 1, Last: 1}}
		p.End(history.OK, "")
		rec.Event(history.Op{Kind: history.Lost, Node: "A"})
		slow.Blocks = p.Blocks // the caller is at it when the recorder is closed
		if err := rec.Close(); err != nil {
			t.Fatal(err)
		}
		slow.End(history.OK, "") // too late
		const ms = int64(time.Millisecond)
		want := []history.Op{
			{Kind: history.Next, Name: "orders", Call: 5 * ms, Return: 7 * ms, Outcome: history.OK, Blocks: p.Blocks},
			{Kind: history.Lost, Node: "A", Call: 7 * ms, Return: 7 * ms, Outcome: history.OK},
			{Kind: history.Next, Name: "slow", Return: history.Never, Outcome: history.Unknown},
		}
		if diff := cmp.Diff(want, read(t, file.Bytes())); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if watched != 3 {
			t.Errorf("%d operations were watched", watched)
		}
	})
}

// Many callers, and a recorder that is closed under them: each call is there
// once.
func TestRecorderBesideManyCallers(t *testing.T) {
	var file bytes.Buffer
	rec := history.NewRecorder(&file, nil)
	const callers, calls = 8, 500
	var all, half sync.WaitGroup
	half.Add(callers)
	for client := range int64(callers) {
		all.Go(func() {
			for i := range int64(calls) {
				if i == calls/2 {
					half.Done()
				}
				rec.Begin(history.Op{Kind: history.Next, Client: client, Count: i + 1}).End(history.OK, "")
			}
		})
	}
	half.Wait()
	if err := rec.Close(); err != nil {
		t.Fatal(err)
	}
	all.Wait()
	seen := make([][]int64, callers)
	for _, op := range read(t, file.Bytes()) {
		seen[op.Client] = append(seen[op.Client], op.Count)
	}
	for client, counts := range seen {
		slices.Sort(counts)
		for i, n := range counts {
			if n != int64(i)+1 {
				t.Fatalf("client %d: call %d is recorded as %d", client, i+1, n)
			}
		}
		if len(counts) < calls/2 {
			t.Errorf("client %d: %d calls are recorded", client, len(counts))
		}
	}
}

// failing takes no bytes.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errFull }

var errFull = errorText("the disk is full")

type errorText string

func (e errorText) Error() string { return string(e) }

func TestRecorderSaysThatItCannotWrite(t *testing.T) {
	rec := history.NewRecorder(failing{}, nil)
	rec.Event(history.Op{Kind: history.Lost})
	if err := rec.Close(); err != errFull {
		t.Errorf("got %v", err)
	}
}

// The fast reader reads what encoding/json reads, and says the same.
func FuzzParse(f *testing.F) {
	op := full()
	f.Add(op.AppendJSON(nil))
	for _, s := range []string{`{}`, `{"call":-0,"return":007}`, `{"blocks":[]}`, `{"blocks":[[1,2],[3,-4]],"tag":"A"}`, `{"call":1,"call":2}`, `{"call":-9223372036854775808}`, `{"kind":"a\tb"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got, gotErr := history.Parse(line)
		want := history.Op{Return: history.Never}
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		wantErr := dec.Decode(&want)
		if gotErr == nil && wantErr != nil || wantErr == nil && gotErr != nil && !dec.More() {
			t.Fatalf("%q: %v, encoding/json: %v", line, gotErr, wantErr)
		}
		if gotErr != nil {
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%q (-json +parse):\n%s", line, diff)
		}
		if again, err := history.Parse(got.AppendJSON(nil)); err != nil || !cmp.Equal(again, got, cmp.Comparer(slices.Equal[[]history.Block])) {
			t.Errorf("%q is read back as %+v, %v", line, again, err)
		}
	})
}

func BenchmarkAppendJSON(b *testing.B) {
	op := history.Op{
		Kind: history.Next, Client: 3, Node: "A", Name: "orders", Call: 123456789, Return: 123999999, Outcome: history.OK,
		Blocks: []history.Block{{First: 70000, Last: 70000}},
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		dst = op.AppendJSON(dst[:0])
	}
}

func BenchmarkRecorder(b *testing.B) {
	rec := history.NewRecorder(discard{}, nil)
	blocks := []history.Block{{First: 70000, Last: 70000}}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p := rec.Begin(history.Op{Kind: history.Next, Client: 3, Node: "A", Name: "orders"})
			p.Blocks = blocks
			p.End(history.OK, "")
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
