package fsm

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAnsweredAgainIsTold: a repeated call is reported, also after a restore from a snapshot; a
// first call and a refused call are not.
func TestAnsweredAgainIsTold(t *testing.T) {
	var told []string
	l := newFormedLog(t)
	tell := func(database string) { told = append(told, database) }
	l.state.cfg.AnsweredAgain = tell
	l.state.use(l.state.contents)
	first := keyed(opNext("users", 1), key(1, 1))
	l.do(first)
	if len(told) > 0 {
		t.Fatalf("a first call was told: %v", told)
	}
	l.do(first)
	l.do(keyed(opNext("users", 2), key(1, 2))) // The id of another request.
	if err := l.state.Restore(bytes.NewReader(snapshotOf(t, l.state))); err != nil {
		t.Fatal(err)
	}
	l.do(first)
	if diff := cmp.Diff([]string{first.GetDatabase(), first.GetDatabase()}, told); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
