package commit

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/internal/outcome"
)

// proposeAll calls ProposeAll on a goroutine of its own.
func (r *rig) proposeAll(ctx context.Context, operations ...string) <-chan []proposeResult {
	c := make(chan []proposeResult, 1)
	encoded := make([][]byte, len(operations))
	for i, operation := range operations {
		encoded[i] = []byte(operation)
	}
	go func() {
		results, errs := r.g.ProposeAll(ctx, encoded)
		answers := make([]proposeResult, len(results))
		for i := range results {
			answers[i] = proposeResult{string(results[i]), errs[i], time.Now()}
		}
		c <- answers
	}()
	return c
}

func TestOperationsProposedTogetherTravelTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, nil)
		c := r.proposeAll(bg, "1", "2", "3")
		s := r.next()
		if diff := cmp.Diff([][]byte{[]byte("1"), []byte("2"), []byte("3")}, s.group.Operations); diff != "" {
			t.Error(diff)
		}
		s.apply()
		for i, a := range <-c {
			wantOK(t, a, fmt.Sprint(i+1))
		}
	})
}

func TestOperationsProposedTogetherFailOneByOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.MaxOperations, c.QueueLength = 2, 3 })
		large := string(bytes.Repeat([]byte("x"), DefaultMaxGroupBytes))
		c := r.proposeAll(bg, "1", large, "2", "3", "one too many")
		r.next().apply()
		s := r.next()
		s.fail(overload)
		answers := <-c
		wantOK(t, answers[0], "1")
		want(t, answers[1].err, outcome.NotApplied, outcome.TooLarge)
		wantOK(t, answers[2], "2")
		want(t, answers[3].err, outcome.NotApplied, outcome.Overloaded)
		want(t, answers[4].err, outcome.NotApplied, outcome.Overloaded)
	})
}

func TestTheCallerOfSeveralGoesAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.MaxOperations = 1 })
		ctx, cancel := context.WithCancel(bg)
		c := r.proposeAll(ctx, "under way", "waits")
		s := r.next()
		cancel()
		answers := <-c
		want(t, answers[0].err, outcome.Unknown, outcome.Deadline)
		want(t, answers[1].err, outcome.NotApplied, outcome.Deadline)
		s.apply()
		r.none()

		late := r.proposeAll(ctx, "late")
		want(t, (<-late)[0].err, outcome.NotApplied, outcome.Deadline)
	})
}
