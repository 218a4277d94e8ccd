package transport

import (
	"errors"
	"testing"

	"github.com/hashicorp/raft"
)

// TestMajorityOfAnswers: only answers count that came in the term asked about,
// from voters, to messages that were sent after the question began.
func TestMajorityOfAnswers(t *testing.T) {
	voters := []raft.ServerID{"a", "b", "c"}
	cases := []struct {
		name   string
		voters []raft.ServerID
		hear   func(a *answers, before, after Mark)
		want   bool
		err    error
	}{
		{"nobody", voters, func(*answers, Mark, Mark) {}, false, nil},
		{"alone", voters[:1], func(*answers, Mark, Mark) {}, true, nil},
		{"not a voter itself", voters[1:2], func(*answers, Mark, Mark) {}, false, nil},
		{"one more", voters, func(a *answers, _, after Mark) { a.heard("b", after, 7, 7) }, true, nil},
		{"sent before", voters, func(a *answers, before, _ Mark) { a.heard("b", before, 7, 7) }, false, nil},
		{"sent before, heard last", voters, func(a *answers, before, after Mark) {
			a.heard("b", after, 7, 7)
			a.heard("b", before, 7, 7)
		}, true, nil},
		{"of an earlier term", voters, func(a *answers, _, after Mark) { a.heard("b", after, 6, 6) }, false, nil},
		{"from a newer term", voters, func(a *answers, _, after Mark) {
			a.heard("b", after, 7, 7)
			a.heard("c", after, 7, 8)
		}, false, ErrNewerTerm},
		{"no voter", voters, func(a *answers, _, after Mark) { a.heard("d", after, 7, 7) }, false, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a := newAnswers()
			before := a.next()
			since := a.next()
			c.hear(a, before, a.next())
			got, changed, err := a.enough(since, 7, c.voters, "a")
			if got != c.want || !errors.Is(err, c.err) {
				t.Fatalf("enough is %v, %v; want %v, %v", got, err, c.want, c.err)
			}
			if got || err != nil {
				return
			}
			a.heard("b", a.next(), 7, 7)
			select {
			case <-changed:
			default:
				t.Error("an answer wakes nobody who waits for one")
			}
		})
	}
}
