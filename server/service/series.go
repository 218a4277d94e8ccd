package service

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// numbers are the use cases of series of document numbers. All but ResumeSeries may be
// repeated: a key has its number, and what has happened already changes nothing.
type numbers struct {
	*base
	zones     zones
	templates templates
}

// change makes a change of a series that needs a right of its own, and audits it. after is what the
// audit log says of it.
func (n *numbers) change(ctx context.Context, event, database, name string, after any, payload proto.Message,
	repeatable bool,
) (*raftlogv1.Result, error) {
	if err := n.Authorize(ctx, rights.Series, database, name); err != nil {
		return nil, err
	}
	record := audit.Record{Event: event, Database: database, Name: name, After: after}
	return n.proposeAudited(ctx, record, op.Envelope{Database: database}, payload, repeatable, thenIs(after))
}

// definedAs is what the audit log says of a definition.
type definedAs struct {
	series.Definition
	Begins []beginsAt `json:",omitempty"`
}

type beginsAt struct {
	Scope []string
	First int64
}

// DefineSeries begins a series, or changes its definition.
func (n *numbers) DefineSeries(ctx context.Context, req *idnodev1.DefineSeriesRequest) (*idnodev1.DefineSeriesResponse, error) {
	return admission.Call(ctx, n.Control, "DefineSeries", req, n.defineSeries)
}

func (n *numbers) defineSeries(ctx context.Context, req *idnodev1.DefineSeriesRequest) (*idnodev1.DefineSeriesResponse, error) {
	database, name, err := keyOf(req.GetDatabase(), req.GetName(), "name")
	if err != nil {
		return nil, err
	}
	if err := n.Authorize(ctx, rights.Series, database, name); err != nil {
		return nil, err
	}
	if req.GetDryRun() {
		end, err := n.AwaitTurn(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	expected, to := req.GetExpectedVersion(), definedAs{Definition: definitionOf(req.GetDefinition())}
	define := &raftlogv1.SeriesDefine{Name: name, Definition: series.DefinitionMessage(to.Definition), ExpectedVersion: expected}
	for _, b := range req.GetBegins() {
		to.Begins = append(to.Begins, beginsAt{b.GetScope(), b.GetFirst()})
		define.Begins = append(define.Begins, &raftlogv1.SeriesBegin{Scope: b.GetScope(), First: b.GetFirst()})
	}
	if !n.zones.has(to.TimeZone) {
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "definition.time_zone",
			"there is no zone %.80q in the IANA table: names are written as in Europe/Berlin", to.TimeZone)
	}
	// The state refuses such a format too. To find the two numbers may take long, and it is
	// not to do that while everything else waits for it.
	f, err := format.Define(to.Format, to.Reset)
	if collides := (*format.CollisionError)(nil); errors.As(err, &collides) {
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "definition.format", "%v", err)
	}
	preview := &idnodev1.SeriesPreview{}
	if err == nil && f.Scrambled() {
		define.Secret = make([]byte, series.MaxSecretBytes)
		_, _ = rand.Read(define.Secret) // It never fails.
		f = f.WithSecret(define.Secret)
	}
	if err == nil {
		n.preview(preview, f, to)
	}
	if req.GetDryRun() {
		if err := n.linearize(ctx); err != nil {
			return nil, err
		}
		// The roles are as new as the answer now.
		if err := n.Authorize(ctx, rights.Series, database, name); err != nil {
			return nil, err
		}
	}
	if req.GetDryRun() || expected > 0 {
		forgets, suspended, refused := n.state.PreviewSeries(database, time.Now(), define)
		preview.Forgets, preview.ForgetsAllotments = forgets.Numbers, forgets.Allotments
		switch {
		case !req.GetDryRun(): // Whether it is refused is for the state to say: it may be a repeated call.
		case refused != nil:
			return nil, refusalError(refused)
		default:
			return &idnodev1.DefineSeriesResponse{Version: expected + 1, Suspended: suspended, Preview: preview}, nil
		}
	}
	done, err := n.change(ctx, audit.EventSeriesDefine, database, name, to, define, true)
	if err != nil {
		return nil, err
	}
	suspended, err := n.suspended(ctx, database, name, done.GetLogIndex())
	return &idnodev1.DefineSeriesResponse{Version: done.GetValue(), LogIndex: done.GetLogIndex(), Suspended: suspended, Preview: preview}, err
}

// preview says what a definition means today.
func (n *numbers) preview(p *idnodev1.SeriesPreview, f *format.Format, to definedAs) {
	today := n.zones.date(to.TimeZone, time.Now())
	p.Values = f.Names()
	if next, ok := f.BeginsAgain(today); ok {
		p.BeginsAgain = next.String()
	}
	date, values, first := today, f.Samples(), int64(1)
	for _, a := range to.Allowed {
		if i := slices.Index(f.Names(), a.GetName()); i >= 0 && len(a.GetValues()) > 0 {
			values[i] = a.GetValues()[0]
		}
	}
	if len(to.Begins) > 0 {
		begin := to.Begins[0]
		if day, given, err := f.ParseScope(begin.Scope); err == nil {
			date, values, first = dayWithin(f, begin.Scope, given, today, day), given, begin.First
		}
	}
	for _, number := range []int64{first, first + 1} {
		if text, err := f.Format(date, values, number); err == nil {
			p.Texts = append(p.Texts, text)
		}
	}
}

// dayWithin returns today if it is in a scope, and else the scope's first day.
func dayWithin(f *format.Format, scope, values []string, today, first format.Date) format.Date {
	if now, err := f.Scope(today, values); err == nil && slices.EqualFunc(now, scope, strings.EqualFold) {
		return today
	}
	return first
}

// suspended checks a series that was defined at a log index: after a restore, a series of its name
// may have given numbers. If it cannot, the outcome is unknown: the caller does not know all of it, and
// may repeat the call.
func (n *numbers) suspended(ctx context.Context, database, name string, defined uint64) (suspended bool, err error) {
	if n.state.AppliedIndex() < defined {
		if err := n.linearize(ctx); err != nil {
			return false, proposalError(outcome.NewUnknown(outcome.Deadline, err), true)
		}
	}
	n.state.ReadSeries(database, name, func(s fsm.NamedSeries, _ *series.Series) { suspended = s.Suspended })
	return suspended, nil
}

// DeleteSeries deletes a series of which no number was confirmed or voided.
func (n *numbers) DeleteSeries(ctx context.Context, req *idnodev1.DeleteSeriesRequest) (*idnodev1.DeleteSeriesResponse, error) {
	return admission.Call(ctx, n.Control, "DeleteSeries", req, n.deleteSeries)
}

func (n *numbers) deleteSeries(ctx context.Context, req *idnodev1.DeleteSeriesRequest) (*idnodev1.DeleteSeriesResponse, error) {
	database, name, err := keyOf(req.GetDatabase(), req.GetName(), "name")
	if err != nil {
		return nil, err
	}
	// Not repeatable: a series of this name and version may have begun since.
	gone := &raftlogv1.SeriesDelete{Name: name, ExpectedVersion: req.GetExpectedVersion()}
	result, err := n.change(ctx, audit.EventSeriesDelete, database, name, nil, gone, false)
	if inUse := (*apierror.Error)(nil); errors.As(err, &inUse) && inUse.Reason == apierror.ReasonSeriesInUse {
		inUse.Message += "; close its scopes if it is to give no more numbers"
	}
	return &idnodev1.DeleteSeriesResponse{LogIndex: result.GetLogIndex()}, err
}

// CloseScope ends a scope, and returns its last number.
func (n *numbers) CloseScope(ctx context.Context, req *idnodev1.CloseScopeRequest) (*idnodev1.CloseScopeResponse, error) {
	return admission.Call(ctx, n.Control, "CloseScope", req, n.closeScope)
}

func (n *numbers) closeScope(ctx context.Context, req *idnodev1.CloseScopeRequest) (*idnodev1.CloseScopeResponse, error) {
	database, name, err := keyOf(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return nil, err
	}
	scope := &raftlogv1.SeriesCloseScope{Name: name, Scope: req.GetScope()}
	last, err := n.change(ctx, audit.EventSeriesClose, database, name, req.GetScope(), scope, true)
	return &idnodev1.CloseScopeResponse{Last: last.GetValue(), LogIndex: last.GetLogIndex()}, err
}

// scopeInBooks is what the audit log has of a scope in the books.
type scopeInBooks struct {
	Scope    []string `json:"scope"`
	Last     int64    `json:"last"`
	LastDate string   `json:"last_date,omitempty"`
	Closed   bool     `json:"closed,omitempty"`
}

// ResumeSeries lets a suspended series go on.
func (n *numbers) ResumeSeries(ctx context.Context, req *idnodev1.ResumeSeriesRequest) (*idnodev1.ResumeSeriesResponse, error) {
	return admission.Call(ctx, n.Control, "ResumeSeries", req, n.resumeSeries)
}

func (n *numbers) resumeSeries(ctx context.Context, req *idnodev1.ResumeSeriesRequest) (*idnodev1.ResumeSeriesResponse, error) {
	database, name, err := keyOf(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return nil, err
	}
	resume := &raftlogv1.SeriesResume{Name: name, More: req.GetMore()}
	var books []scopeInBooks
	for _, b := range req.GetBooks() {
		in := &raftlogv1.SeriesInBooks{Scope: b.GetScope(), Last: b.GetLast(), Closed: b.GetClosed()}
		if in.LastDate, err = dateOf(b.GetLastDate()); err != nil {
			return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "books", "the last date of a scope: %v", err)
		}
		resume.Books = append(resume.Books, in)
		books = append(books, scopeInBooks{b.GetScope(), b.GetLast(), b.GetLastDate(), b.GetClosed()})
	}
	// The last call is not repeatable: another restore may have suspended the series since, for a
	// reason of its own.
	result, err := n.change(ctx, audit.EventSeriesResume, database, name, books, resume, req.GetMore())
	return &idnodev1.ResumeSeriesResponse{LogIndex: result.GetLogIndex()}, err
}

// dateOf returns a date as it is in the log; nil if none is given.
func dateOf(text string) (*int32, error) {
	if text == "" {
		return nil, nil
	}
	date, err := format.ParseDate(text)
	return proto.Int32(int32(date)), err
}

func seriesNotFound(name string) *apierror.Error {
	return &apierror.Error{
		Code: apierror.CodeNotFound, Reason: apierror.ReasonSeriesNotFound, Field: "series",
		Message: "there is no series " + name,
	}
}

// chosen returns a choice of the API as packages series and format number it: from 0, with the
// default first, where the API has 0 for the default too. An unknown choice is the greatest
// value, which is unknown there.
func chosen[T ~uint8](enum int32) T {
	if enum < 0 || enum > math.MaxUint8 {
		return math.MaxUint8
	}
	return T(max(enum, 1) - 1)
}

func definitionOf(m *idnodev1.SeriesDefinition) series.Definition {
	d := series.Definition{
		Format: m.GetFormat(), Reset: chosen[format.Reset](int32(m.GetResetBy())), Order: chosen[series.Order](int32(m.GetOrder())),
		OnRelease: chosen[series.OnRelease](int32(m.GetOnRelease())), OnExpiry: chosen[series.OnExpiry](int32(m.GetOnExpiry())),
		ExpiresIn: m.GetExpiresIn().AsDuration(), MaxOpen: m.GetMaxOpen(), MaxKeys: m.GetMaxKeys(), TimeZone: m.GetTimeZone(),
		MaxAheadDays: m.GetMaxAheadDays(), AheadGiven: m != nil && m.MaxAheadDays != nil, MaxLength: m.GetMaxLength(),
	}
	for _, a := range m.GetAllowed() {
		d.Allowed = append(d.Allowed, &raftlogv1.SeriesAllowed{Name: a.GetName(), Values: a.GetValues()})
	}
	return d
}

func definitionMessage(d series.Definition) *idnodev1.SeriesDefinition {
	m := &idnodev1.SeriesDefinition{
		Format: d.Format, ResetBy: idnodev1.SeriesReset(d.Reset + 1), Order: idnodev1.SeriesOrder(d.Order + 1),
		OnRelease: idnodev1.SeriesOnRelease(d.OnRelease + 1), OnExpiry: idnodev1.SeriesOnExpiry(d.OnExpiry + 1),
		MaxOpen: d.MaxOpen, MaxKeys: d.MaxKeys, TimeZone: d.TimeZone, MaxLength: d.MaxLength,
	}
	for _, a := range d.Allowed {
		m.Allowed = append(m.Allowed, &idnodev1.AllowedValues{Name: a.GetName(), Values: a.GetValues()})
	}
	if d.AheadGiven {
		m.MaxAheadDays = &d.MaxAheadDays
	}
	if d.ExpiresIn > 0 {
		m.ExpiresIn = durationpb.New(d.ExpiresIn)
	}
	return m
}

func seriesMessage(s fsm.NamedSeries) *idnodev1.Series {
	return &idnodev1.Series{
		Name: s.Name, Definition: definitionMessage(s.Definition), Version: s.Version, Suspended: s.Suspended, Keys: s.Keys,
	}
}
