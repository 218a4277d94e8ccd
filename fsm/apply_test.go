package fsm

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// TestLookingAheadChangesNothing: among many names, operations in one group, some of which make or
// forget the names of others and some are malformed, have the same effect as one by one.
func TestLookingAheadChangesNothing(t *testing.T) {
	together, single := newFormedLog(t), newFormedLog(t)
	for _, l := range []*testLog{together, single} {
		l.fill(manyNames, func(i int) *raftlogv1.Operation { return opNext(benchName(i), 1) })
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var operations [][]byte
		for range 100 {
			operations = append(operations, drawOperation(random))
		}
		results := together.apply(raftlog.Group{Operations: operations})[0].Results
		for i, operation := range operations {
			// One by one, but at the same place in the log.
			alone := single.apply(raftlog.Group{Operations: [][]byte{operation}})[0].Results[0]
			got, want := together.answer(results[i]), single.answer(alone)
			if got != want {
				t.Fatalf("operation %x: %s together, %s alone", operation, got, want)
			}
		}
	}
	a, b := together.state.contents.identities, single.state.contents.identities
	if a.shown.Len() != b.shown.Len() || a.hidden.Len() != b.hidden.Len() {
		t.Errorf("%d and %d identities together, %d and %d alone", a.shown.Len(), a.hidden.Len(), b.shown.Len(), b.hidden.Len())
	}
}

// drawOperation draws an operation on one of the names, old or new.
func drawOperation(random *rand.Rand) []byte {
	name := benchName(random.IntN(manyNames + 1000))
	switch random.IntN(8) {
	case 0:
		return encodeOperation(opDelete(name, random.IntN(2) == 0))
	case 1:
		data := bytes.Clone(encodeOperation(opNext(name, 1)))
		return data[:random.IntN(len(data))]
	case 2:
		op := opNext(name, 1)
		op.Database = fmt.Sprint("new", random.IntN(3))
		return encodeOperation(op)
	}
	return encodeOperation(opNext(name, 1+random.Int64N(3)))
}

// answer is a result without its place in the log.
func (l *testLog) answer(data []byte) string {
	l.t.Helper()
	r, err := decodeResult(data)
	if err != nil {
		l.t.Fatal(err)
	}
	r.LogIndex = 0
	return r.String()
}
