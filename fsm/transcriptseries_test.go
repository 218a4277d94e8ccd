package fsm

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// series understands lines on series of document numbers; nil for others.
func (p *transcript) series(l line) *raftlogv1.Operation {
	o := &raftlogv1.Operation{Database: "db"}
	switch l.verb {
	case "define":
		o.Op = &raftlogv1.Operation_SeriesDefine{SeriesDefine: &raftlogv1.SeriesDefine{
			Name: l.name(0), ExpectedVersion: l.int("expected"), Definition: p.definition(l), Begins: l.begins(),
		}}
	case "undefine":
		o.Op = &raftlogv1.Operation_SeriesDelete{SeriesDelete: &raftlogv1.SeriesDelete{Name: l.name(0), ExpectedVersion: l.int("expected")}}
	case "take":
		o.Op = &raftlogv1.Operation_SeriesTake{SeriesTake: p.take(l)}
	case "confirm", "void", "give-back":
		state := map[string]series.NumberState{"confirm": series.Confirmed, "void": series.Voided, "give-back": series.Released}[l.verb]
		end := &raftlogv1.SeriesEnd{Name: l.name(0), State: uint32(state), Reason: l.text("reason", "")}
		for _, name := range l.names[1:] {
			key, number, _ := strings.Cut(name, ":")
			n, _ := strconv.ParseInt(number, 10, 64)
			end.Keys = append(end.Keys, &raftlogv1.SeriesKey{Key: key, Number: n})
		}
		o.Op = &raftlogv1.Operation_SeriesEnd{SeriesEnd: end}
	case "close":
		o.Op = &raftlogv1.Operation_SeriesCloseScope{SeriesCloseScope: &raftlogv1.SeriesCloseScope{Name: l.name(0), Scope: l.list("scope")}}
	case "allot":
		from, to, _ := strings.Cut(l.name(1), ":")
		allotment := &raftlogv1.SeriesAllotment{Note: l.text("note", "")}
		allotment.From, _ = strconv.ParseInt(from, 10, 64)
		allotment.To, _ = strconv.ParseInt(to, 10, 64)
		if until, ok := l.options["until"]; ok {
			allotment.Until = p.date(until)
		}
		o.Op = &raftlogv1.Operation_SeriesAllot{SeriesAllot: &raftlogv1.SeriesAllot{
			Name: l.name(0), Scope: l.list("scope"), Allotment: allotment, Withdraw: l.int("withdraw") == 1,
		}}
	case "resume":
		resume := &raftlogv1.SeriesResume{Name: l.name(0), More: l.int("more") == 1}
		for _, name := range l.names[1:] {
			scope, last, _ := strings.Cut(name, ":")
			last, date, dated := strings.Cut(last, ":")
			n, _ := strconv.ParseInt(last, 10, 64)
			b := &raftlogv1.SeriesInBooks{Scope: strings.Split(scope, ","), Last: n, Closed: l.int("closed") == 1}
			if dated {
				b.LastDate = p.date(date)
			}
			resume.Books = append(resume.Books, b)
		}
		o.Op = &raftlogv1.Operation_SeriesResume{SeriesResume: resume}
	case "reconcile":
		reconcile := &raftlogv1.SeriesReconcile{Name: l.name(0), Scope: l.list("scope"), Reason: l.text("reason", "")}
		for _, name := range l.names[1:] {
			number, key, _ := strings.Cut(name, ":")
			n, _ := strconv.ParseInt(number, 10, 64)
			reconcile.Numbers = append(reconcile.Numbers, &raftlogv1.SeriesKey{Key: key, Number: n})
		}
		o.Op = &raftlogv1.Operation_SeriesReconcile{SeriesReconcile: reconcile}
	default:
		return nil
	}
	return o
}

// begins are behind the name, each as 2026,BERLIN:543.
func (l line) begins() (all []*raftlogv1.SeriesBegin) {
	for _, name := range l.names[1:] {
		scope, first, _ := strings.Cut(name, ":")
		n, _ := strconv.ParseInt(first, 10, 64)
		b := &raftlogv1.SeriesBegin{First: n}
		if scope != "" {
			b.Scope = strings.Split(scope, ",")
		}
		all = append(all, b)
	}
	return all
}

func (p *transcript) date(text string) *int32 {
	d, err := format.ParseDate(text)
	if err != nil {
		p.t.Fatal(err)
	}
	return proto.Int32(int32(d))
}

func (p *transcript) definition(l line) *raftlogv1.SeriesDefinition {
	d := &raftlogv1.SeriesDefinition{
		Format: l.text("format", "{number}"), ResetBy: uint32(l.int("reset")), Order: uint32(l.int("order")),
		OnRelease: uint32(l.int("on-release")), OnExpiry: uint32(l.int("on-expiry")), ExpiresInNanos: p.nanos(l, "expires"),
		MaxOpen: l.int("max-open"), MaxKeys: l.int("max-keys"), TimeZone: l.text("zone", ""), MaxLength: uint32(l.int("max-length")),
	}
	if _, given := l.options["ahead"]; given {
		d.MaxAheadDays = proto.Int32(int32(l.int("ahead")))
	}
	if values := l.list("allowed"); values != nil {
		d.Allowed = []*raftlogv1.SeriesAllowed{{Name: "branch", Values: values}}
	}
	return d
}

func (p *transcript) take(l line) *raftlogv1.SeriesTake {
	take := &raftlogv1.SeriesTake{
		Name: l.name(0), Values: l.list("values"), Keys: l.names[1:], UtcOffsetSeconds: int32(l.int("offset")),
		Label: l.text("label", ""), ExpiresInNanos: p.nanos(l, "expires"), Number: l.int("number"), Because: l.text("because", ""),
	}
	if date, ok := l.options["date"]; ok {
		take.Date = p.date(date)
	}
	p.state.ReadSeries(l.text("db", "db"), l.name(0), func(s NamedSeries, _ *series.Series) {
		take.Version, take.SinceUnixNano = s.Version-l.int("behind"), s.Since
	})
	return take
}

func (p *transcript) nanos(l line, option string) int64 {
	d, err := time.ParseDuration(l.text(option, "0s"))
	if err != nil {
		p.t.Fatal(err)
	}
	return int64(d)
}

// list returns an option's values.
func (l line) list(option string) []string {
	if l.options[option] == "" {
		return nil
	}
	return strings.Split(l.options[option], ",")
}

func showNumbers(numbers []*raftlogv1.SeriesNumber) string {
	all := make([]string, len(numbers))
	for i, n := range numbers {
		all[i] = fmt.Sprintf("%s %s %s", n.Key, n.Text, series.NumberState(n.GetState()))
		if n.Overdue {
			all[i] += " overdue"
		}
		if n.Reason != "" {
			all[i] += ": " + n.Reason
		}
		if n.Label != "" {
			all[i] += " [" + n.Label + "]"
		}
		if n.Note != "" {
			all[i] += " by " + n.Note
		}
	}
	return strings.Join(all, ", ")
}

// readSeries shows the series of a database, or the numbers of one.
func (p *transcript) readSeries(db string, l line) string {
	var all []string
	if len(l.names) == 0 {
		for _, s := range p.state.SeriesList(db, l.options["prefix"], l.options["after"], 100) {
			all = append(all, fmt.Sprintf("%s version %d, %d keys, suspended %t", s.Name, s.Version, s.Keys, s.Suspended))
		}
		return strings.Join(all, "; ")
	}
	found := p.state.ReadSeries(db, l.name(0), func(_ NamedSeries, s *series.Series) {
		for _, scope := range s.At(p.now.UnixNano()).Report(0, 100, 0) {
			numbers, _, err := s.At(p.now.UnixNano()).Numbers(scope.Scope, 0, 0, 100)
			if err != nil {
				p.t.Error(err)
			}
			before := ""
			if scope.Before > 0 {
				before = fmt.Sprintf(" behind %d", scope.Before)
			}
			all = append(all, fmt.Sprintf("%v closed %t%s: %s", scope.Scope, scope.Closed, before, showNumbers(numbers)))
		}
	})
	return fmt.Sprint(strings.Join(all, "; "), " ", found)
}
