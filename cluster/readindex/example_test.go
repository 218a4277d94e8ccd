package readindex_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/idnode/idnode/cluster/readindex"
)

// leader is the Raft of a leader in term 3. Its first entry in that term has index 10, and
// the state machine saw no entry after index 8 up to there.
type leader struct{ commit uint64 }

func (l *leader) CommitIndex() uint64          { return l.commit }
func (l *leader) Term() uint64                 { return 3 }
func (l *leader) Verify(context.Context) error { return nil } // A quorum answered.

func (l *leader) Ready() (readindex.Ready, bool) {
	return readindex.Ready{Term: 3, Barrier: 10, Applied: 8}, true
}

// A leader answers with its commit index, once a quorum has confirmed that it still leads. A
// read that waits until its own state machine has applied that index is linearizable.
func ExampleLocal() {
	raft := &leader{commit: 10}
	local := readindex.NewLocal(raft)
	defer local.Close()

	index, err := local.ReadIndex(context.Background())
	fmt.Println(index, err) // The state machine never sees the barrier itself.
	raft.commit = 12
	index, err = local.ReadIndex(context.Background())
	fmt.Println(index, err)
	// Output:
	// 8 <nil>
	// 12 <nil>
}

// self is the id of a follower, whose state machine has applied the log up to an index.
const self = "follower"

type follower struct{ applied uint64 }

// WaitLeader is Config.WaitLeader.
func (f *follower) WaitLeader(context.Context) (string, error) { return "leader", nil }

// ReadIndex is Config.AskRemote: the call to the leader.
func (f *follower) ReadIndex(context.Context, string) (uint64, error) { return 12, nil }

// WaitApplied is Config.WaitApplied. Here the log is applied on demand.
func (f *follower) WaitApplied(_ context.Context, index uint64) error {
	f.applied = max(f.applied, index)
	return nil
}

// A follower asks the leader for the index, and reads its own state.
func ExampleReader() {
	node := &follower{applied: 7}
	local := readindex.NewLocal(notLeading{})
	defer local.Close()
	reader := readindex.New(readindex.Config{
		Self: self, WaitLeader: node.WaitLeader, Local: local, AskRemote: node.ReadIndex, WaitApplied: node.WaitApplied, Limit: time.Second,
	})
	defer reader.Close()

	fmt.Println(reader.Linearize(context.Background()))
	fmt.Println("applied up to", node.applied)
	// Output:
	// <nil>
	// applied up to 12
}

// notLeading is the Raft of a follower.
type notLeading struct{}

func (notLeading) CommitIndex() uint64                { return 7 }
func (notLeading) Term() uint64                       { return 3 }
func (notLeading) Verify(context.Context) error       { return errors.New("no leader") }
func (notLeading) Ready() (_ readindex.Ready, _ bool) { return }
