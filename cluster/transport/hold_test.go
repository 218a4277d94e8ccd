package transport

import (
	"context"
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// TestAnAnswerWaitsForTheOwnDisk: an answer that acknowledges entries, and no other, reaches the
// library only when the own disk has them. The wait ends with the transport, and fails with the
// disk.
func TestAnAnswerWaitsForTheOwnDisk(t *testing.T) {
	failed := errors.New("input/output error")
	for _, c := range []struct {
		name    string
		entries []*raft.Log
		success bool
		held    bool
	}{
		{"entries that are acknowledged", []*raft.Log{{Index: 8}, {Index: 9}}, true, true},
		{"entries that are refused", []*raft.Log{{Index: 8}}, false, false},
		{"a heartbeat", nil, true, false},
	} {
		for end, want := range map[string]error{"written": nil, "failed": failed, "closed": context.Canceled} {
			t.Run(c.name+", "+end, func(t *testing.T) {
				b := newBook()
				leader, follower := start(t, b, "A", nil), start(t, b, "B", nil)
				go func() {
					for rpc := range follower.Consumer() {
						if rpc.Command == nil {
							return
						}
						rpc.Respond(&raft.AppendEntriesResponse{Term: 3, Success: c.success}, nil)
					}
				}()
				t.Cleanup(func() { close(follower.inbound.toRaft) })
				asked, written := make(chan uint64, 1), make(chan error, 1)
				leader.HoldAnswers(func(ctx context.Context, index uint64) error {
					asked <- index
					select {
					case err := <-written:
						return err
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				id := raft.ServerID(idOf("B"))
				answered := make(chan error, 1)
				go func() {
					answered <- leader.AppendEntries(id, Address(id), &raft.AppendEntriesRequest{
						RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte(idOf("A")), Addr: []byte(idOf("A"))}, Term: 3, Entries: c.entries,
					}, &raft.AppendEntriesResponse{})
				}()
				if !c.held {
					if err := <-answered; err != nil || len(asked) > 0 {
						t.Errorf("answered with %v, and the disk was asked %d times", err, len(asked))
					}
					return
				}
				if index := <-asked; index != 9 || len(answered) > 0 {
					t.Errorf("the disk is asked for entry %d", index)
				}
				if leader.Unanswered(leader.SendSeq(), []raft.ServerID{id}) > 0 {
					t.Error("an answer that is held counts as missing")
				}
				if end == "closed" {
					_ = leader.Close()
				} else {
					written <- want
				}
				if err := <-answered; !errors.Is(err, want) {
					t.Errorf("answered with %v, want %v", err, want)
				}
			})
		}
	}
}
