package check_test

import (
	"flag"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/idnode/idnode/test/cputime"
	"github.com/idnode/idnode/test/history"
	"github.com/idnode/idnode/test/history/check"
)

var operations = flag.Int("operations", 0, "how many operations TestSpeed checks; 0 is a number that suits the machine of a check-in")

// stream yields n calls of 64 callers on four names, as they return: one of a
// hundred has an unknown outcome, and half of those took a value.
func stream(n int, yield func(*history.Op)) {
	r := rand.New(rand.NewPCG(1, 0))
	names := []string{"orders", "users", "companies", "employees"}
	last := make([]int64, len(names))
	op := history.Op{Kind: history.Next, Node: "A", Database: "shop", Blocks: make([]history.Block, 1)}
	for i := range n {
		k := r.IntN(len(names))
		moment := int64(i) * 1000
		op.Client, op.Name = int64(i%64), names[k]
		op.Call, op.Return, op.Outcome = moment-r.Int64N(30_000), moment+r.Int64N(30_000), history.OK
		if draw := r.IntN(200); draw < 2 {
			op.Outcome = history.Unknown
			last[k] += int64(draw)
		} else {
			last[k]++
		}
		op.Blocks[0] = history.Block{First: last[k], Last: last[k]}
		yield(&op)
	}
}

// TestSpeed: checking takes no more than a few times what it takes to sort as
// many numbers. The ratio, because the machine may be any, and of processor time,
// because it may be busy. For the figure itself:
//
//	go test -run TestSpeed -v ./test/history/check -operations 10000000
func TestSpeed(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	n := *operations
	if n == 0 {
		n = 500_000
	}
	checker := check.New(check.Options{Longest: time.Second})
	begin := cputime.Thread()
	stream(n, checker.Add)
	fed := cputime.Thread() - begin
	report := checker.Report()
	took := cputime.Thread() - begin
	if err := report.Err(); err != nil {
		t.Fatal(err)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	sorting := timeToSort(n)
	ratio := took.Seconds() / sorting.Seconds()
	t.Logf("%d operations: %s of processor time, of that %s to take them in; %.0f a second; %d MB of memory; %.1f × sorting as many "+
		"numbers (%s)",
		n, took, fed, float64(n)/took.Seconds(), memory.Sys>>20, ratio, sorting)
	if ratio > 15 {
		t.Errorf("checking takes %.1f times as long as sorting", ratio)
	}
}

func timeToSort(n int) time.Duration {
	r := rand.New(rand.NewPCG(2, 0))
	numbers := make([]int64, n)
	for i := range numbers {
		numbers[i] = r.Int64()
	}
	begin := cputime.Thread()
	slices.Sort(numbers)
	return cputime.Thread() - begin
}
