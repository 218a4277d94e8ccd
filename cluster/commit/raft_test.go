package commit

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/internal/outcome"
	"github.com/idnode/idnode/raftlog"
)

func TestClassify(t *testing.T) {
	tests := []struct {
		err     error
		outcome outcome.Outcome
		reason  outcome.Reason
	}{
		{raft.ErrNotLeader, outcome.NotApplied, outcome.NotLeader},
		{raft.ErrLeadershipTransferInProgress, outcome.NotApplied, outcome.NotLeader},
		{raft.ErrEnqueueTimeout, outcome.NotApplied, outcome.Overloaded},
		{raft.ErrLeadershipLost, outcome.Unknown, outcome.LeadershipLost},
		{raft.ErrAbortedByRestore, outcome.Unknown, outcome.LeadershipLost},
		{raft.ErrRaftShutdown, outcome.Unknown, outcome.Stopping},
		{errors.New("write: no space left on device"), outcome.Unknown, outcome.Storage},
		{outcome.NewNotApplied(outcome.StorageFull, nil), outcome.NotApplied, outcome.StorageFull},
	}
	for _, test := range tests {
		t.Run(test.err.Error(), func(t *testing.T) {
			for _, err := range []error{test.err, fmt.Errorf("wrapped: %w", test.err)} {
				got := Classify(err)
				want(t, got, test.outcome, test.reason)
				if !errors.Is(err, got) && !errors.Is(got, err) {
					t.Errorf("%v lost its cause", got)
				}
			}
		})
	}
	if got := Classify(nil); got != nil {
		t.Errorf("nil is %v", got)
	}
}

// fakeApply is an Applier and the future it returns.
type fakeApply struct {
	err      error
	index    uint64
	response any
}

func (f fakeApply) Apply([]byte, time.Duration) raft.ApplyFuture { return f }
func (f fakeApply) Error() error                                 { return f.err }
func (f fakeApply) Index() uint64                                { return f.index }
func (f fakeApply) Response() any                                { return f.response }

func TestRaftLogSaysWhatBecameOfAnEntry(t *testing.T) {
	tests := []struct {
		name    string
		apply   fakeApply
		outcome outcome.Outcome
		reason  outcome.Reason
	}{
		{"applied", fakeApply{index: 7, response: []raftlog.GroupResult{{}}}, outcome.Applied, outcome.Unspecified},
		{"shut down before it was appended", fakeApply{err: raft.ErrRaftShutdown}, outcome.NotApplied, outcome.Stopping},
		{"shut down after it was appended", fakeApply{err: raft.ErrRaftShutdown, index: 7}, outcome.Unknown, outcome.Stopping},
		{"refused", fakeApply{err: raft.ErrNotLeader}, outcome.NotApplied, outcome.NotLeader},
		{"the disk failed", fakeApply{err: io.ErrShortWrite, index: 7}, outcome.Unknown, outcome.Storage},
		{"the state machine failed", fakeApply{index: 7, response: raftlog.ErrCorrupt}, outcome.Unknown, outcome.Unspecified},
		{"no response", fakeApply{index: 7}, outcome.Unknown, outcome.Unspecified},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := <-(&RaftLog{test.apply}).Append(nil)
			if test.outcome == outcome.Applied {
				if a.Err != nil || len(a.Results) != 1 {
					t.Fatalf("got %v, %v", a.Results, a.Err)
				}
				return
			}
			want(t, a.Err, test.outcome, test.reason)
		})
	}
}

// countingFSM answers each entry as a state machine does, or with an error.
type countingFSM struct{}

func (countingFSM) Apply(log *raft.Log) any {
	entry, err := raftlog.DecodeEntry(log.Data, raftlog.FormatVersion)
	if err != nil {
		return err
	}
	return make([]raftlog.GroupResult, len(entry.Groups))
}
func (countingFSM) Snapshot() (raft.FSMSnapshot, error) { return nil, errors.New("no snapshots") }
func (countingFSM) Restore(io.ReadCloser) error         { return errors.New("no snapshots") }

// TestRaftItselfKeepsToTheTable asks the library, so that an update of it that
// changes what an error means is noticed.
func TestRaftItselfKeepsToTheTable(t *testing.T) {
	config := raft.DefaultConfig()
	config.LocalID, config.LogOutput = "a", io.Discard
	config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	store := raft.NewInmemStore()
	_, transport := raft.NewInmemTransport("a")
	r, err := raft.NewRaft(config, countingFSM{}, store, store, raft.NewInmemSnapshotStore(), transport)
	if err != nil {
		t.Fatal(err)
	}
	log := &RaftLog{r}
	appendOne := func(entry []byte) ([]raftlog.GroupResult, error) {
		a := <-log.Append(entry)
		return a.Results, a.Err
	}

	_, err = appendOne(nil)
	want(t, err, outcome.NotApplied, outcome.NotLeader)

	servers := []raft.Server{{ID: "a", Address: "a"}}
	if err := r.BootstrapCluster(raft.Configuration{Servers: servers}).Error(); err != nil {
		t.Fatal(err)
	}
	<-r.LeaderCh()
	results, err := appendOne(raftlog.AppendEntry(nil, raftlog.Header{Format: 1}, [][]byte{encoded("x"), encoded("y")}))
	if err != nil || len(results) != 2 {
		t.Fatalf("got %v, %v", results, err)
	}
	_, err = appendOne([]byte{0xff})
	want(t, err, outcome.Unknown, outcome.Unspecified)

	if err := r.Shutdown().Error(); err != nil {
		t.Fatal(err)
	}
	_, err = appendOne(nil)
	want(t, err, outcome.NotApplied, outcome.Stopping)
}
