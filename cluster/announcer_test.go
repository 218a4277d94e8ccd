package cluster

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/cluster/duty"
	"github.com/idnode/idnode/cluster/member"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/test/logbuffer"
)

// applied is a state machine that has applied all there is.
type applied struct{ StateMachine }

func (applied) WaitApplied(context.Context, uint64) error { return nil }

// TestAnAnnouncementThatTheLogDoesNotTake: the node says why it does not serve the log, from
// its start on, or once a new session could not be opened for longer than an election takes;
// and no longer once one is.
func TestAnAnnouncementThatTheLogDoesNotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answer, err := proto.Marshal(&raftlogv1.Result{Result: &raftlogv1.Result_Member{Member: &raftlogv1.MemberResult{
			Session: 7, Member: &raftlogv1.Member{Tag: "A"},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		told := new(logbuffer.Buffer)
		tooLarge := errors.New("too large to send")
		var failure atomic.Pointer[error]
		var unanswered atomic.Bool
		proposed := atomic.Int32{}
		failure.Store(&tooLarge)
		a := newAnnouncer(&announcer{
			cfg:    Config{StateMachine: applied{}, OnAnnounce: func(*raftlogv1.MemberResult) {}},
			record: member.NewNodeRecord(&member.Record{Tag: "A", TagConfirmed: true}, member.NodeRecordConfig{}),
			log:    slog.New(slog.NewTextHandler(told, nil)),
			propose: func(context.Context, []byte) ([]byte, error) {
				proposed.Add(1)
				if err := failure.Load(); err != nil {
					return nil, *err
				}
				return answer, nil
			},
			unanswered: unanswered.Load,
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		go duty.New(a.log, duty.NewBeats(), a.duty()).Run(ctx, func() bool { return true }, nil)
		want := func(served bool, lines int, when string) {
			t.Helper()
			synctest.Wait()
			err := a.served()
			if (err == nil) != served || err != nil && !errors.Is(err, tooLarge) || strings.Count(told.String(), "\n") != lines {
				t.Errorf("%s: %v, and it said %q", when, err, told.String())
			}
		}
		want(false, 0, "at the start")
		time.Sleep(2 * outageGrace)
		want(false, 1, "the log does not take it")
		failure.Store(nil)
		time.Sleep(announcePause)
		want(true, 2, "the log takes it")
		_, _, err = a.Open(ctx) // The session of the start.
		failure.Store(&tooLarge)
		_, _, failed := a.Open(ctx)
		if err != nil || failed == nil {
			t.Errorf("%v, %v", err, failed)
		}
		want(true, 2, "as in an election")
		time.Sleep(2 * outageGrace)
		want(false, 3, "no session for long")
		failure.Store(nil)
		time.Sleep(announcePause)
		want(true, 4, "a session again, without a caller")
		before := proposed.Load()
		time.Sleep(time.Minute)
		unanswered.Store(true)
		time.Sleep(2 * announcePause)
		if asked := proposed.Load() - before; asked == 0 || asked > 3 {
			t.Errorf("%d announcements to a leader that answers no group, want one in each pause, and none before", asked)
		}
	})
}

// behind is a state machine that has not applied yet what it is asked for.
type behind struct {
	StateMachine
	late *bool
}

func (b behind) WaitApplied(context.Context, uint64) error {
	if *b.late {
		return context.DeadlineExceeded
	}
	return nil
}

// TestAnAnnouncementIsRepeatedUntilItIsAppliedHere: another one would be another start of the node, and the stop before
// that start would not be the clean one that the first told of.
func TestAnAnnouncementIsRepeatedUntilItIsAppliedHere(t *testing.T) {
	late, answers, accepted := true, map[string][]byte{}, []uint64(nil)
	a := newAnnouncer(&announcer{
		cfg: Config{StateMachine: behind{late: &late}, OnAnnounce: func(r *raftlogv1.MemberResult) {
			accepted = append(accepted, r.GetEtags().GetStart())
		}},
		record: member.NewNodeRecord(&member.Record{Tag: "A", TagConfirmed: true}, member.NodeRecordConfig{}),
		log:    slog.New(slog.DiscardHandler),
		propose: func(_ context.Context, announcement []byte) ([]byte, error) { // One with the same request id has its answer.
			if answers[string(announcement)] == nil {
				start := uint64(len(answers) + 1)
				answer, err := proto.Marshal(&raftlogv1.Result{Result: &raftlogv1.Result_Member{Member: &raftlogv1.MemberResult{
					Session: start, Member: &raftlogv1.Member{Tag: "A"}, Etags: &raftlogv1.EtagRecord{Start: start},
				}}})
				if err != nil {
					return nil, err
				}
				answers[string(announcement)] = answer
			}
			return answers[string(announcement)], nil
		},
		unanswered: func() bool { return false },
	})
	for range 2 {
		if _, _, err := a.Open(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	late = false
	for range 2 { // The second session is of another announcement.
		if _, _, err := a.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(accepted, []uint64{1, 2}) {
		t.Errorf("the answers to the starts %v were taken, want each once", accepted)
	}
}
