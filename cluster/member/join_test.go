package member

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/fsm/op"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// scriptedJoiner answers requests to join in the order of its script, and says it is of the clusters.
type scriptedJoiner struct {
	script   []error
	asked    []string
	clusters []byte
}

// Hello implements Greeter: each answer is of the next cluster, and 0 is none.
func (d *scriptedJoiner) Hello(context.Context, string, string, *peerv1.HelloRequest) (*peerv1.HelloResponse, error) {
	id := d.clusters[0]
	d.clusters = d.clusters[1:]
	if id == 0 {
		return &peerv1.HelloResponse{}, nil
	}
	return &peerv1.HelloResponse{ClusterId: []byte{id}}, nil
}

// Join implements Joiner.
func (d *scriptedJoiner) Join(_ context.Context, _, address string, req *peerv1.JoinRequest) (*peerv1.JoinResponse, error) {
	d.asked = append(d.asked, address)
	if len(d.asked) <= len(d.script) {
		return nil, d.script[len(d.asked)-1]
	}
	m := testMember("D", 4)
	m.Id = req.GetMember().GetId()
	return &peerv1.JoinResponse{ClusterId: make([]byte, ClusterIDSize), Member: m, Members: []*raftlogv1.Member{testMember("A", 1), m}}, nil
}

type toldDenied struct{ error }

func (toldDenied) Denied() bool    { return true }
func (e toldDenied) Unwrap() error { return e.error }

func refused(reason raftlogv1.RefusalReason) error {
	return &op.RefusedError{Refusal: &raftlogv1.Refusal{Reason: reason}}
}

func TestJoin(t *testing.T) {
	down := errors.New("down")
	tests := []struct {
		name   string
		script []error
		want   error
		asked  int
	}{
		{"at once", nil, nil, 1},
		{"the second address", []error{down}, nil, 2},
		{"after a while", []error{down, down, refused(raftlogv1.RefusalReason_REFUSAL_REASON_NOT_FORMED), down}, nil, 5},
		{"for a reason of a newer program", []error{refused(999)}, nil, 2},
		{"tag taken", []error{refused(raftlogv1.RefusalReason_REFUSAL_REASON_TAG_TAKEN)}, ErrTagTaken, 1},
		{"denied", []error{toldDenied{down}}, down, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &scriptedJoiner{script: tt.script}
				self := testMember("", 4)
				place, err := Join{
					Self: self, Addresses: []string{"A:7400", "B:7400"}, Joiner: d,
					Logger: slog.New(slog.DiscardHandler), Tell: func(error) {},
				}.Run(t.Context())
				if !errors.Is(err, tt.want) {
					t.Fatalf("error %v, want %v", err, tt.want)
				}
				if len(d.asked) != tt.asked {
					t.Errorf("asked %v, want %d times", d.asked, tt.asked)
				}
				if err == nil && (place.Tag != "D" || !place.Confirmed || place.Founder) {
					t.Errorf("place %+v", place)
				}
			})
		})
	}
}

// TestJoinComparesTheCluster before it asks for anything.
func TestJoinComparesTheCluster(t *testing.T) {
	for clusters, asked := range map[string]int{"\x07": 1, "\x08": 0, "\x00\x00\x07": 1, "\x00\x08": 0} {
		synctest.Test(t, func(t *testing.T) {
			d := &scriptedJoiner{clusters: []byte(clusters)}
			_, err := Join{
				Self: testMember("", 4), Addresses: []string{"A:7400", "B:7400"}, ClusterID: "07", Joiner: d,
				Logger: slog.New(slog.DiscardHandler), Tell: func(error) {},
			}.Run(t.Context())
			if errors.Is(err, ErrOtherCluster) != (asked == 0) || len(d.asked) != asked {
				t.Errorf("%x: asked %d times to join, want %d: %v", clusters, len(d.asked), asked, err)
			}
			if asked == 0 && !strings.Contains(err.Error(), "is 07, and") {
				t.Errorf("%x: %v", clusters, err)
			}
		})
	}
}

// TestJoinRefusedForGood reports what the cluster said.
func TestJoinRefusedForGood(t *testing.T) {
	d := &scriptedJoiner{script: []error{refused(raftlogv1.RefusalReason_REFUSAL_REASON_TAG_INVALID)}}
	_, err := Join{
		Self: testMember("", 4), Addresses: []string{"A:7400"}, Joiner: d, Logger: slog.New(slog.DiscardHandler), Tell: func(error) {},
	}.Run(t.Context())
	var r *op.RefusedError
	if !errors.As(err, &r) {
		t.Errorf("error %v, want a refusal", err)
	}
}

// TestJoinEndsWithItsContext keeps asking until then.
func TestJoinEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := make([]error, 10_000)
		for i := range script {
			script[i] = errors.New("down")
		}
		d := &scriptedJoiner{script: script}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := Join{
			Self: testMember("", 4), Addresses: []string{"A:7400", "B:7400"}, Joiner: d,
			Logger: slog.New(slog.DiscardHandler), Tell: func(error) {},
		}.Run(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the deadline", err)
		}
		if n := len(d.asked); n < 25 || n > 60 {
			t.Errorf("asked %d times in a minute, want about every 2 s", n)
		}
	})
}
