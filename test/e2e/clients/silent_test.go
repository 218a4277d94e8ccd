package clients

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/idnode/idnode/test/tier"
)

// kind is how a node of the matrix answers.
type kind int

const (
	quick kind = iota
	slow       // each answer takes slowAnswer
	silent
)

func (k kind) String() string { return [...]string{"quick", "slow", "silent"}[k] }

const (
	// slowAnswer is what a node needs that is busy or far.
	slowAnswer = 250 * time.Millisecond
	// leaves is the time after which each client leaves a silent node: it asks after 300 ms, and the node
	// has 200 ms.
	leaves = 500 * time.Millisecond
	// callTime is the time of a call where nobody will answer.
	callTime = 3 * time.Second
	// matrixTries is how often a cell is tried, since a busy machine is late at times. A wrong client
	// needs the time of a try each time.
	matrixTries = 3
)

// linger has a slow node wait, and notes when the first call of a cell came to a node.
func (s *script) linger(ctx context.Context, node, method string) {
	s.mu.Lock()
	if method != "GetStatus" && len(s.kinds) > 0 && s.asked.IsZero() {
		s.asked = time.Now()
	}
	isSlow := s.kinds[node] == slow
	s.mu.Unlock()
	if isSlow {
		select {
		case <-ctx.Done():
		case <-time.After(slowAnswer):
		}
	}
}

// bound returns how long a call may take in a cell: to leave the leader if it is silent, and as long
// again; to hear of another leader, and its answer, if they are slow. Where all are silent it is the
// time of a call.
func bound(cell []kind) time.Duration {
	switch {
	case allSilent(cell):
		return 2 * callTime
	case cell[0] != silent:
		return leaves // No other node is asked: see matrixCase.
	case slices.Contains(cell, slow):
		return 2*leaves + 2*slowAnswer
	default:
		return 2 * leaves
	}
}

func allSilent(cell []kind) bool {
	return !slices.ContainsFunc(cell, func(k kind) bool { return k != silent })
}

// eachCell has a client take two values of an identity from three nodes. After the first one each node is
// silent, slow or quick: a call leaves a leader that is silent, as soon as any other node answers, and no
// other. Nobody answers where all are silent, and the call ends in its time.
func eachCell(t *testing.T, calls func(*testing.T, testCase, *script) []outcome) {
	tier.Long(t)
	for i := range 27 {
		cell := []kind{kind(i / 9), kind(i / 3 % 3), kind(i % 3)}
		t.Run(cell[0].String()+" "+cell[1].String()+" "+cell[2].String(), func(t *testing.T) {
			for try := range matrixTries {
				c := matrixCase(cell)
				s := newScript(c)
				begin := time.Now()
				got := calls(t, c, s)
				took := time.Since(begin)
				if !allSilent(cell) {
					s.mu.Lock()
					took = s.took
					s.mu.Unlock()
				}
				if try == matrixTries-1 || took <= bound(cell) {
					judge(t, c, s, got)
					t.Logf("try %d: %s", try+1, took)
					if took > bound(cell) {
						t.Errorf("the call took %s, want %s", took, bound(cell))
					}
					return
				}
			}
		})
	}
}

func matrixCase(cell []kind) testCase {
	value := func(n string) json.RawMessage {
		return json.RawMessage(`{"blocks": [{"first": "` + n + `", "last": "` + n + `"}], "logIndex": "10` + n + `"}`)
	}
	next := func(n string) call {
		return call{Call: "identity.next", Args: args{Name: "invoices"}, Values: []string{n}}
	}
	last := exchange{Method: "NextIdentity", Answer: value("8")}
	if cell[0] != silent {
		last.Node = "A"
	}
	c := testCase{
		Nodes: len(cell), Calls: []call{next("7"), next("8")},
		Server: []exchange{{Node: "A", Method: "NextIdentity", Answer: value("7"), become: cell}, last},
	}
	if allSilent(cell) {
		c.Options.TimeoutMs, c.Server = int(callTime.Milliseconds()), c.Server[:1]
		c.Calls[1].Values, c.Calls[1].Error = nil, &failure{Type: "OutcomeUnknown"}
	}
	return c
}

// TestSilentNodes has each client meet each cell.
func TestSilentNodes(t *testing.T) {
	eachLanguage(t, func(t *testing.T, l language) {
		r := l.start(t)
		eachCell(t, func(t *testing.T, c testCase, s *script) (got []outcome) {
			r.task(t, task{Endpoints: s.serveHTTP(t, c.Nodes), Options: c.Options, Calls: c.Calls})
			r.answer(t, &got)
			return got
		})
	})
	t.Run("go", func(t *testing.T) {
		eachCell(t, func(t *testing.T, c testCase, s *script) []outcome { return callGo(t, s.serveGRPC(t, c.Nodes), c) })
	})
}
