package fsm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/hilo"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// show renders a result. The index is shown only where it differs from that of the entry just
// applied.
func (p *transcript) show(r *raftlogv1.Result) string {
	s := p.answer(r)
	if r.GetLogIndex() != p.index {
		s += fmt.Sprintf(" (as at index %d)", r.GetLogIndex())
	}
	return s
}

func (p *transcript) answer(r *raftlogv1.Result) string {
	if f := r.GetRefusal(); f != nil {
		reason := strings.TrimPrefix(f.GetReason().String(), "REFUSAL_REASON_")
		s := strings.TrimSpace(fmt.Sprintf("%s %s", reason, strings.TrimSpace(f.GetField()+" "+f.GetDetail())))
		if n := f.GetSeriesNumber(); n != nil {
			s += " (" + showNumbers([]*raftlogv1.SeriesNumber{n}) + ")"
		}
		return s
	}
	switch a := r.GetResult().(type) {
	case *raftlogv1.Result_IdentityNext:
		var blocks []string
		for _, v := range a.IdentityNext.GetValues() {
			blocks = append(blocks, showBlock(v.GetFirst(), v.GetLast()))
		}
		return strings.Join(blocks, ", ")
	case *raftlogv1.Result_Value:
		if r.Before != nil {
			return fmt.Sprintf("%d, was %d", a.Value, r.GetBefore())
		}
		return strconv.FormatInt(a.Value, 10)
	case *raftlogv1.Result_RolesBefore:
		return fmt.Sprintf("roles, before set at %d", a.RolesBefore)
	case *raftlogv1.Result_HiloNext:
		n := a.HiloNext
		s := fmt.Sprintf("%s size %d token %d from %s", showBlock(n.GetLow(), n.GetHigh()), n.GetSize(), n.GetToken(), n.GetServerTag())
		if n.GetServerPrefix() != "" {
			s += " prefix " + n.GetServerPrefix()
		}
		if r.Before != nil {
			s += fmt.Sprintf(", was %d", r.GetBefore())
		}
		return s
	case *raftlogv1.Result_HiloReturn:
		if a.HiloReturn.GetReturned() {
			return fmt.Sprintf("taken back, max %d", a.HiloReturn.GetMax())
		}
		return fmt.Sprintf("not taken back, max %d", a.HiloReturn.GetMax())
	case *raftlogv1.Result_Member:
		return showMember(a.Member)
	case *raftlogv1.Result_PoolDefined:
		window := time.Duration(a.PoolDefined.GetWindowNanos())
		return fmt.Sprintf("window %s, %d bits of the sequence", window, a.PoolDefined.GetLayout().GetSequenceBits())
	case *raftlogv1.Result_WorkerLease:
		return p.showLease(op.LeaseOf(a.WorkerLease))
	case *raftlogv1.Result_SeriesNumbers:
		shown := showNumbers(a.SeriesNumbers.GetNumbers())
		if before := a.SeriesNumbers.GetBefore(); before != nil {
			shown += fmt.Sprintf("; before it %s ended at %d", strings.Join(before.GetScope(), " "), before.GetLast())
		}
		return shown
	}
	return "done"
}

// showOutstanding renders a range and its holder.
func (p *transcript) showOutstanding(o hilo.Outstanding) string {
	h := HolderOf(o)
	if h == nil {
		return fmt.Sprintf("%d-%d", o.Low, o.High)
	}
	s := fmt.Sprintf("%d-%d %q of %q", o.Low, o.High, h.Label, h.Principal)
	if h.Reserve {
		s = fmt.Sprintf("%d-%d reserve of %q", o.Low, o.High, h.Principal)
	}
	return fmt.Sprintf("%s from %s at %s", s, h.Node, time.Unix(h.IssuedUnix, 0).UTC().Format(time.TimeOnly))
}

func showBlock(first, last int64) string {
	if first == last {
		return strconv.FormatInt(first, 10)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

func showMember(r *raftlogv1.MemberResult) string {
	m := r.GetMember()
	s := fmt.Sprintf("%s at %s", m.GetTag(), m.GetGrpcAddress())
	if m.GetWatcher() {
		s += " watcher"
	}
	if m.GetVoter() {
		s += " voter"
	}
	if m.GetRemoved() {
		s += " removed"
	}
	if r.GetSession() > 0 {
		s += fmt.Sprintf(", session %d, %s", r.GetSession(), showEtags(r.GetEtags()))
	}
	return s
}

func showEtags(e *raftlogv1.EtagRecord) string {
	s := fmt.Sprintf("start %d", e.GetStart())
	if e.GetClean() {
		s += " after a clean stop"
	}
	for _, d := range e.GetCeilings() {
		s += fmt.Sprintf(", %s below %d", d.GetDatabase(), d.GetCeiling())
		if e.GetClean() {
			s += fmt.Sprintf(" at %d", d.GetLast())
		}
	}
	return s
}

// read understands a line that asks.
func (p *transcript) read(s string) string {
	l := words(s)
	db, limit := l.text("db", "db"), 100
	if _, ok := l.options["limit"]; ok {
		limit = int(l.int("limit"))
	}
	prefix, after := l.options["prefix"], l.options["after"]
	switch l.verb {
	case "identity":
		c, ok := p.state.Identity(db, l.name(0))
		return fmt.Sprint(c.Last, " ", ok)
	case "identities":
		var names []string
		for _, id := range p.state.Identities(db, prefix, after, limit) {
			names = append(names, fmt.Sprintf("%s at %d", id.Name, id.Last))
		}
		return strings.Join(names, ", ")
	case "hilo":
		c, ok := p.state.HiLo(db, l.name(0))
		ranges := make([]string, len(c.Outstanding))
		for i, o := range c.Outstanding {
			ranges[i] = p.showOutstanding(o)
		}
		return fmt.Sprintf("max %d peak %d outstanding %v %v", c.Max, c.Peak, ranges, ok)
	case "hilos":
		var tags []string
		for _, h := range p.state.HiLos(db, prefix, after, limit) {
			tags = append(tags, fmt.Sprintf("%s at %d", h.Tag, h.Max))
		}
		return strings.Join(tags, ", ")
	case "claimed":
		return fmt.Sprint(slices.Contains(p.state.Claims(db, l.name(0), "", 1), l.name(0)))
	case "claims":
		return strings.Join(p.state.Claims(db, prefix, after, limit), ", ")
	case "members":
		var all []string
		for _, m := range p.state.Members() {
			all = append(all, showMember(&raftlogv1.MemberResult{Member: m}))
		}
		return strings.Join(all, "; ")
	case "etags":
		return showEtags(p.state.Etags(nodeNamed("node " + l.name(0))))
	case "setting":
		setting, ok := p.state.Setting(l.name(0))
		return fmt.Sprint(setting.Value, " ", ok)
	case "series":
		return p.readSeries(db, l)
	case "pool":
		return p.readPool(db, l.name(0))
	case "counts":
		return fmt.Sprintf("%+v", p.state.Counts())
	case "databases":
		return strings.Join(p.state.Databases(), ", ")
	case "roles":
		return fmt.Sprintf("set at %d", p.state.Roles().SetAt)
	case "format":
		return fmt.Sprint(p.state.Format())
	}
	p.t.Fatalf("what is %q?", s)
	return ""
}
