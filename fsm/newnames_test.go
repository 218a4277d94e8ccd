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

// A control character in a name is refused from StrictFormat on, where the name is
// new. What exists goes on, and so does what a restore brings back.
func TestNoNewNameHasAControlCharacter(t *testing.T) {
	const old, fresh = "us\ners", "\u202eusers"
	l := newLogOf(t, MergeFormat)
	for _, ops := range making(old) {
		for _, op := range ops {
			l.mustApplied(l.do(op))
		}
	}
	for _, tag := range []string{"A", "B", "C"} {
		l.announceMerging(tag)
	}
	l.mustApplied(l.raw(formatRaiseOperation(StrictFormat)))
	for field, ops := range making(fresh) {
		for _, op := range ops {
			r := l.mustRefuse(field, op)
			diff(t, raftlogv1.RefusalReason_REFUSAL_REASON_INVALID, r.GetReason())
			diff(t, field, r.GetField())
		}
	}
	l.state = restored(t, snapshotOf(t, l.state))
	for _, op := range []*raftlogv1.Operation{
		opNext(old, 3), opSeed(old, 90, false, nil), opDelete(old, false), opNext(old, 1), opDelete(old, true),
		opHiLo(&raftlogv1.HiLoNext{Tag: old}), opReleaseID(old),
		opMergeOf(mergeIdentity(fresh, 7, false)), opMergeOf(mergeHiLo(fresh, 7, 7)), opMergeOf(&raftlogv1.Merge{Claims: []string{fresh}}),
		opNext(fresh, 1), opHiLo(&raftlogv1.HiLoNext{Tag: fresh}), opReleaseID(fresh),
	} {
		l.mustApplied(l.do(op))
	}
	l.mustRefuse("forgotten", opNext(old, 1))
	l.mustRefuse("released", opClaimID(old))
}
