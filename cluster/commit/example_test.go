package commit_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/idnode/idnode/cluster/commit"
	"github.com/idnode/idnode/raftlog"
)

// memoryLog is a replicated log of one node, whose state machine counts operations.
type memoryLog struct{ applied int }

// Append implements commit.Log: it "commits" and applies an entry.
func (l *memoryLog) Append(data []byte) <-chan commit.Appended {
	entry, err := raftlog.DecodeEntry(data, raftlog.FormatVersion)
	if err != nil {
		panic(err)
	}
	var results []raftlog.GroupResult
	for _, group := range entry.Groups {
		result := raftlog.GroupResult{Status: raftlog.Applied}
		for _, operation := range group.Operations {
			l.applied++
			result.Results = append(result.Results, fmt.Appendf(nil, "%s is operation %d", operation, l.applied))
		}
		results = append(results, result)
	}
	done := make(chan commit.Appended, 1)
	done <- commit.Appended{Results: results}
	return done
}

// local sends groups to this node's own Batcher. A cluster has a connection to the leader here.
type local struct{ leader *commit.Batcher }

func (l local) Send(ctx context.Context, _ string, group []byte) (raftlog.GroupResult, error) {
	return l.leader.Submit(ctx, group)
}

// opener opens session 1. A cluster commits an announcement of the node here.
type opener struct{}

func (opener) Open(context.Context) (session uint64, origin []byte, err error) {
	return 1, make([]byte, 16), nil
}

// Events that nobody counts.
var (
	untold = commit.Events{
		Cut: func(int, time.Duration) {}, Answered: func(int, int, int, time.Duration) {},
		GivenUp: func(int, error) {},
	}
	untoldEntries = commit.BatcherEvents{Appending: func() {}, Appended: func(int, int, int, time.Duration, error) {}}
)

// A node gathers its callers' operations and sends them to the leader, which makes log
// entries of them. Here one node is both.
func Example() {
	ctx := context.Background()
	batcher := commit.NewBatcher(commit.BatcherConfig{
		Log:    &memoryLog{},
		Logger: slog.New(slog.DiscardHandler),
		Events: untoldEntries,
		Header: func() (format uint32, clusterID []byte) { return raftlog.FormatVersion, make([]byte, 16) },
		Now:    time.Now,
	})
	defer batcher.Close(ctx)
	gatherer := commit.New(commit.Config{
		Sender: local{batcher}, Opener: opener{}, Logger: slog.New(slog.DiscardHandler), LeaderWait: time.Millisecond,
		Events: untold, ResultBound: func([]byte) int { return 0 },
	})
	defer gatherer.Close(ctx)

	batcher.Lead(ctx)         // This node was elected,
	gatherer.SetLeader("one") // knows the leader's Raft id,
	gatherer.SetQuorum(true)  // and reaches a quorum.

	for _, operation := range []string{"first", "second"} {
		result, err := gatherer.Propose(ctx, []byte(operation))
		fmt.Println(string(result), err)
	}
	// Several operations are queued in one step, and each has an outcome of its own.
	results, errs := gatherer.ProposeAll(ctx, [][]byte{[]byte("third"), []byte("fourth")})
	for i := range results {
		fmt.Println(string(results[i]), errs[i])
	}

	batcher.StepDown()
	gatherer.SetQuorum(false)
	_, err := gatherer.Propose(ctx, []byte("fifth"))
	fmt.Println(err) // After LeaderWait.
	// Output:
	// first is operation 1 <nil>
	// second is operation 2 <nil>
	// third is operation 3 <nil>
	// fourth is operation 4 <nil>
	// not applied: no quorum
}
