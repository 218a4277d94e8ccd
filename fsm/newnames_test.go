package fsm

import (
	"testing"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// making are the operations that make something of a name, by the field of it.
func making(name string) map[string][]*raftlogv1.Operation {
	return map[string][]*raftlogv1.Operation{
		"name": {opNext(name, 1), opSeed(name, 5, false, nil), opSeed(name, 9, true, nil)},
		"tag":  {opHiLo(&raftlogv1.HiLoNext{Tag: name, Size: 32}), opHiLoSetTo(name, 40, 32)},
		"id":   {opClaimID(name)},
	}
}

// An invisible character in a name is refused where the name is new. Names that a restore brings
// back stay usable.
func TestNoNewNameHasAnInvisibleCharacter(t *testing.T) {
	for _, name := range []string{"\u202eusers", "us\u200bers", "users\u00ad", "\ufeffusers", "users\U000e0041"} {
		noNewName(t, name)
	}
}

func noNewName(t *testing.T, name string) {
	t.Helper()
	l := newFormedLog(t)
	for field, ops := range making(name) {
		for _, op := range ops {
			r := l.mustRefuse(field, op)
			diff(t, raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, r.GetReason())
			diff(t, field, r.GetField())
		}
	}
	for _, op := range []*raftlogv1.Operation{
		opMergeOf(mergeIdentity(name, 7, false)), opMergeOf(mergeHiLo(name, 7, 7)), opMergeOf(&raftlogv1.Merge{Claims: []string{name}}),
	} {
		l.mustApplied(l.do(op))
	}
	l.state = restored(t, snapshotOf(t, l.state))
	for _, op := range []*raftlogv1.Operation{
		opNext(name, 3), opSeed(name, 90, false, nil), opDelete(name, false), opNext(name, 1), opDelete(name, true),
		opHiLo(&raftlogv1.HiLoNext{Tag: name}), opReleaseID(name),
	} {
		l.mustApplied(l.do(op))
	}
	l.mustRefuse("forgotten", opNext(name, 1))
	l.mustRefuse("released", opClaimID(name))
}
