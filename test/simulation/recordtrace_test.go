package simulation

import (
	"slices"

	"github.com/cespare/xxhash/v2"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/test/model"
)

// recorded tells the model what an operation that took effect did to HiLo tags, members,
// and what the cluster records of etags.
func (t *tracer) recorded(operation, answer []byte, result *raftlogv1.Result) error {
	o, err := op.Decode(operation)
	if err != nil || t.remembered(o, answer) {
		return nil // The state refuses it, or answers it as before.
	}
	switch o.Kind {
	case op.KindHiLoNext:
		return withPayload(o, func(next *raftlogv1.HiLoNext) error {
			r := result.GetHiloNext()
			return t.cluster.Ranges(string(o.Database), next.GetTag()).Issue(r.GetLow(), r.GetHigh(), next.GetLastMax(), next.GetToken())
		})
	case op.KindHiLoReturn:
		return withPayload(o, func(r *raftlogv1.HiLoReturn) error {
			if !result.GetHiloReturn().GetReturned() {
				return nil
			}
			return t.cluster.Ranges(string(o.Database), r.GetTag()).Return(r.GetLow(), r.GetHigh(), r.GetLast(), r.GetToken(), r.GetCheckToken())
		})
	case op.KindHiLoSet:
		return withPayload(o, func(s *raftlogv1.HiLoSet) error {
			return t.cluster.Ranges(string(o.Database), s.GetTag()).Set(s.GetMax(), s.GetExpected())
		})
	case op.KindMerge:
		return withPayload(o, func(m *raftlogv1.Merge) error {
			for _, h := range m.GetHilos() {
				t.cluster.Ranges(string(o.Database), h.GetTag()).Raise(h.GetMax(), h.GetPeak())
			}
			return nil
		})
	case op.KindBootstrap:
		return withPayload(o, t.bootstrapped)
	case op.KindJoinTokenCreate:
		return withPayload(o, func(i *raftlogv1.JoinTokenCreate) error {
			t.cluster.Tags().CreateJoinToken(string(i.GetTokenHash()))
			return nil
		})
	case op.KindMemberAdd:
		return withPayload(o, func(j *raftlogv1.MemberAdd) error {
			m := result.GetMember().GetMember()
			return t.cluster.Tags().AddMember(string(m.GetId()), m.GetTag(), string(j.GetTokenHash()))
		})
	case op.KindMemberRemove:
		t.cluster.Tags().Remove(string(result.GetMember().GetMember().GetId()))
	case op.KindMemberAnnounce:
		return t.announced(result.GetMember())
	case op.KindEtagRaise:
		return withPayload(o, func(r *raftlogv1.EtagRaise) error { return t.raised(r, result) })
	case op.KindEtagCleanStop:
		return withPayload(o, func(s *raftlogv1.EtagCleanStop) error { return t.stopped(s, result) })
	}
	return nil
}

// remembered reports whether an operation is answered as one with its request key before
// it: it is a copy, and only the answer is given again.
func (t *tracer) remembered(o op.Operation, answer []byte) bool {
	if !o.Keyed {
		return false
	}
	before, sum := t.requests[o.Request.Key], xxhash.Sum64(answer)
	t.requests[o.Request.Key] = sum
	return before == sum
}

// withPayload decodes an operation's payload for a judge.
func withPayload[P any, M interface {
	*P
	proto.Message
}](o op.Operation, judge func(M) error) error {
	payload := M(new(P))
	if err := o.DecodePayload(payload); err != nil {
		return err
	}
	return judge(payload)
}

func (t *tracer) bootstrapped(b *raftlogv1.Bootstrap) error {
	for _, m := range b.GetMembers() {
		if err := t.cluster.Tags().Join(string(m.GetId()), m.GetTag()); err != nil {
			return err
		}
	}
	return nil
}

func (t *tracer) announced(m *raftlogv1.MemberResult) error {
	if err := t.cluster.Tags().Join(string(m.GetMember().GetId()), m.GetMember().GetTag()); err != nil {
		return err
	}
	return t.cluster.Etags(m.GetMember().GetId()).Announced(m.GetEtags().GetStart(), m.GetEtags().GetClean())
}

func (t *tracer) raised(raise *raftlogv1.EtagRaise, result *raftlogv1.Result) error {
	to := model.Counters{}
	for _, r := range raise.GetRaise() {
		if !slices.Contains(result.GetEtag().GetRefused(), r.GetDatabase()) {
			to[r.GetDatabase()] = r.GetCeiling()
		}
	}
	t.cluster.Etags(raise.GetNode()).Raised(to)
	return nil
}

func (t *tracer) stopped(stop *raftlogv1.EtagCleanStop, result *raftlogv1.Result) error {
	last := model.Counters{}
	for _, l := range stop.GetLast() {
		if !slices.Contains(result.GetEtag().GetRefused(), l.GetDatabase()) {
			last[l.GetDatabase()] = l.GetLast()
		}
	}
	return t.cluster.Etags(stop.GetNode()).CleanStop(stop.GetStart(), last, stop.GetPartial())
}
