package recovery

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/cluster/member"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestOnlyALostQuorumIsRecovered: a member that answers is to be stopped first, with a
// majority nothing is lost, and what does not say who it is must be known to be another
// program.
func TestOnlyALostQuorumIsRecovered(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	here := lis.Addr().String()
	id := []byte{7}
	silent := errors.New("no answer")
	self := func(cluster []byte, tag string) *idnodev1.GetStatusResponse {
		return &idnodev1.GetStatusResponse{ClusterId: hex.EncodeToString(cluster), Self: &idnodev1.Member{Tag: tag}}
	}
	for _, tt := range []struct {
		name       string
		b, c       *idnodev1.GetStatusResponse // What answers at their addresses; nil for nothing.
		bOpen      bool
		lost       []string
		recovering bool
		listed     *idnodev1.GetStatusResponse // What answers where the list has B.
		keep       []string                    // A alone if there is none.
		want       string
	}{
		{name: "nobody answers"},
		{name: "without this node", keep: []string{"B"}, want: "is that of node A, which is not among those"},
		{name: "with an address in place of a tag", keep: []string{"A", "B=127.0.0.1:1"}, want: "there is no member B=127.0.0.1:1"},
		{name: "with a removed member", keep: []string{"A", "D"}, want: "there is no member D"},
		{name: "a majority answers", b: self(id, "B"), want: "a majority is available: 2 of 3 voters"},
		{name: "after a crash in the middle the others run as they are", b: self(id, "B"), recovering: true, want: "node B runs at"},
		{name: "a watcher answers", c: self(id, "W"), want: "node W runs at"},
		{name: "a node of another cluster", b: self([]byte{8}, "B")},
		{name: "another node of the cluster", b: self(id, "X")},
		{name: "something else listens", bOpen: true, want: "--assume-lost B"},
		{name: "something else that is known to", bOpen: true, lost: []string{"B"}},
		{name: "at its address on the list", listed: self(id, "B"), want: "a majority is available: 2 of 3 voters"},
		{name: "at another's address", c: self(id, "B"), recovering: true, want: "node B runs at 127.0.0.1:2"},
		{name: "another cluster's at the address on the list", listed: self([]byte{8}, "B")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &raftlogv1.Member{Tag: "B", Voter: true, GrpcAddress: "127.0.0.1:1", RaftAddress: "127.0.0.1:1"}
			if tt.bOpen {
				b.RaftAddress = here
			}
			w := &raftlogv1.Member{Tag: "W", Watcher: true, GrpcAddress: "127.0.0.1:2", RaftAddress: "127.0.0.1:2"}
			keep := tt.keep
			if keep == nil {
				keep = []string{"A"}
			}
			const listed = "127.0.0.1:4"
			r := &Recovery{Options: Options{
				Keep: keep, Lost: tt.lost,
				Peer: map[string]string{
					"A": "127.0.0.1:5", "B": listed,
					"D": "127.0.0.1:6",
				},
			}, Record: &member.Record{Tag: "A", ClusterID: id, Recovering: tt.recovering, Members: []*raftlogv1.Member{
				{Tag: "A", Voter: true},
				b, w,
				{Tag: "C", Voter: true, GrpcAddress: "127.0.0.1:3", RaftAddress: "127.0.0.1:3"},
				{Tag: "D", Voter: true, Removed: true},
			}}}
			found, err := r.Probe(t.Context(), func(_ context.Context, address string) (*idnodev1.GetStatusResponse, error) {
				for at, answer := range map[string]*idnodev1.GetStatusResponse{b.GrpcAddress: tt.b, w.GrpcAddress: tt.c, listed: tt.listed} {
					if at == address && answer != nil {
						return answer, nil
					}
				}
				return nil, silent
			})
			if err != nil || len(found) != 4 {
				t.Fatalf("%v %v", found, err)
			}
			if err := r.Check(found); tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}
