package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/internal/outcome"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// MaxSeriesKeyBytes bounds the sum of the keys of one call, in bytes: they must fit into a group
// of the log, with the numbers that their callers expect.
const MaxSeriesKeyBytes = 40_000

// numbers are the use cases of series of document numbers. All but ResumeSeries may be
// repeated: a key has its number, and what has happened already changes nothing.
type numbers struct {
	base
	zones     zones
	templates templates
}

// definedAs is what the audit log says of a definition.
type definedAs struct {
	series.Definition
	Begins []series.Begin `json:",omitempty"`
}

// DefineSeries begins a series, or changes its definition.
func (n *numbers) DefineSeries(ctx context.Context, req *idnodev1.DefineSeriesRequest) (*idnodev1.DefineSeriesResponse, error) {
	return call(ctx, n.calls, "DefineSeries", req, n.defineSeries)
}

func (n *numbers) defineSeries(ctx context.Context, req *idnodev1.DefineSeriesRequest) (*idnodev1.DefineSeriesResponse, error) {
	database, name, err := seriesKey(req.GetDatabase(), req.GetName(), "name")
	if err != nil {
		return nil, err
	}
	if err := n.authorize(ctx, rights.Series, database, name); err != nil {
		return nil, err
	}
	if req.GetDryRun() {
		end, err := n.turn(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	to := definedAs{Definition: definitionOf(req.GetDefinition())}
	for _, b := range req.GetBegins() {
		to.Begins = append(to.Begins, series.Begin{Scope: b.GetScope(), First: b.GetFirst()})
	}
	if !n.zones.has(to.TimeZone) {
		return nil, invalid(ReasonInvalidSeries, "definition.time_zone",
			"there is no zone %.80q in the IANA table: names are written as in Europe/Berlin", to.TimeZone)
	}
	// The state refuses such a format too. To find the two numbers may take long, and it is
	// not to do that while everything else waits for it.
	f, err := format.Define(to.Format, to.Reset)
	if collides := (*format.CollisionError)(nil); errors.As(err, &collides) {
		return nil, invalid(ReasonInvalidSeries, "definition.format", "%v", err)
	}
	preview := &idnodev1.SeriesPreview{}
	if err == nil {
		n.preview(preview, f, to)
	}
	expected := req.GetExpectedVersion()
	define := &raftlogv1.SeriesDefine{
		Name: name, Definition: op.SeriesDefinition(to.Definition), ExpectedVersion: expected, Begins: op.SeriesBegins(to.Begins),
	}
	if req.GetDryRun() {
		would, err := n.tryDefinition(ctx, database, define)
		preview.Forgets = would.Forgets
		return &idnodev1.DefineSeriesResponse{Version: expected + 1, Suspended: would.Suspended, Preview: preview}, err
	}
	if expected > 0 {
		// Whether it is refused is for the state to say: it may be a repeated call.
		would, _ := n.state.PreviewSeries(database, time.Now(), define)
		preview.Forgets = would.Forgets
	}
	done, err := n.change(ctx, audit.EventSeriesDefine, database, name, to, define, true)
	if err != nil {
		return nil, err
	}
	suspended, err := n.suspended(ctx, database, name, done.GetLogIndex())
	return &idnodev1.DefineSeriesResponse{Version: done.GetValue(), LogIndex: done.GetLogIndex(), Suspended: suspended, Preview: preview}, err
}

// suspended checks a series that was defined at a log index: after a restore, a series of its name may have
// given numbers. If it cannot, the outcome is unknown: the caller does not know all of it, and
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

// change proposes and records a change of a series.
func (n *numbers) change(ctx context.Context, event, database, name string, after any, payload proto.Message,
	repeatable bool,
) (*raftlogv1.Result, error) {
	if err := n.authorize(ctx, rights.Series, database, name); err != nil {
		return nil, err
	}
	record := audit.Record{Event: event, Database: database, Name: name, After: after}
	return n.proposeAudited(ctx, record, op.Envelope{Database: database}, payload, repeatable, thenIs(after))
}

// recorded makes a change of a series that needs a right of its own, and audits it.
func (n *numbers) recorded(ctx context.Context, event, database, name string, after any, do func() (uint64, error)) error {
	if err := n.authorize(ctx, rights.Series, database, name); err != nil {
		return err
	}
	return n.audited(ctx, audit.Record{Event: event, Database: database, Name: name, After: after}, func() (change, error) {
		index, err := do()
		return change{index: index, after: after}, err
	})
}

// TakeNumbers gives each key a number, or none.
func (n *numbers) TakeNumbers(ctx context.Context, req *idnodev1.TakeNumbersRequest) (*idnodev1.TakeNumbersResponse, error) {
	return call(ctx, n.calls, "TakeNumbers", req, n.takeNumbers)
}

func (n *numbers) takeNumbers(ctx context.Context, req *idnodev1.TakeNumbersRequest) (*idnodev1.TakeNumbersResponse, error) {
	database, name, err := seriesKey(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return nil, err
	}
	keys := req.GetKeys()
	if err := checkSeriesKeys(slices.Values(keys), len(keys)); err != nil {
		return nil, err
	}
	if err := n.allow(ctx, rights.Number, target{database: database, name: name}, int64(len(keys))); err != nil {
		return nil, err
	}
	take := &raftlogv1.SeriesTake{Name: name, Keys: keys, Label: req.GetLabel(), ExpiresInNanos: int64(req.GetExpiresIn().AsDuration())}
	if req.GetDate() != "" {
		date, err := format.ParseDate(req.GetDate())
		if err != nil {
			return nil, invalid(ReasonInvalidSeries, "date", "%v", err)
		}
		take.Date = proto.Int32(int32(date))
	}
	taken, err := n.take(ctx, database, take, req.GetValues())
	if known := (*Error)(nil); errors.As(err, &known) && known.Reason == ReasonConcurrency {
		// This node was behind a definition.
		if err := n.linearize(ctx); err != nil {
			return nil, err
		}
		taken, err = n.take(ctx, database, take, req.GetValues())
	}
	if err == nil {
		n.events.numbersTaken(database, name, int64(len(keys)))
	}
	res := &idnodev1.TakeNumbersResponse{Numbers: numberMessages(taken.Numbers), LogIndex: taken.LogIndex}
	if taken.Before != nil {
		res.Before = &idnodev1.ScopeLast{Scope: taken.Before.Scope, Last: taken.Before.Last}
	}
	return res, err
}

// take gives numbers by the definition that this node knows. If that is outdated, it changes
// nothing, and the error's reason is ReasonConcurrency.
func (n *numbers) take(ctx context.Context, database string, take *raftlogv1.SeriesTake, values map[string]string) (op.Numbers, error) {
	if err := n.byDefinition(ctx, database, take, values); err != nil {
		return op.Numbers{}, err
	}
	if err := n.limitNames(ctx, func() []target { return n.newIn(database, take) }); err != nil {
		return op.Numbers{}, err
	}
	return n.proposeNumbers(ctx, database, take)
}

// newIn returns the keys that a series does not know, and the scope that they begin.
func (n *numbers) newIn(database string, take *raftlogv1.SeriesTake) (fresh []target) {
	date := format.DateAt(time.Now().UnixNano(), take.GetUtcOffsetSeconds())
	if take.Date != nil {
		date = format.Date(take.GetDate())
	}
	of := func(name string) target { return target{targetNumber, database, take.GetName() + "\x00" + name} }
	n.state.ReadSeries(database, take.GetName(), func(_ fsm.NamedSeries, s *series.Series) {
		for _, key := range take.GetKeys() {
			if _, bytes := s.Unknown([]string{key}); bytes > 0 {
				fresh = append(fresh, of(key))
			}
		}
		q := series.Request{Keys: take.GetKeys(), Values: take.GetValues(), Date: date}
		if scope := s.Begins(time.Now().UnixNano(), q); scope != "" {
			fresh = append(fresh, of(scope))
		}
	})
	return fresh
}

func (n *numbers) proposeNumbers(ctx context.Context, database string, payload proto.Message) (given op.Numbers, err error) {
	err = n.named(ctx, false, true, func(principal *string) error {
		answer, err := n.answer(ctx, op.Envelope{Database: database, Principal: principal}, payload)
		if err == nil {
			given, err = op.DecodeNumbers(answer)
		}
		return internalCodec(err)
	})
	return given, err
}

// byDefinition puts into a take what the definition decides: the order of the values, and
// the zone. A node that does not know the series, or whose definition does not fit, asks the
// cluster: either may be new.
func (n *numbers) byDefinition(ctx context.Context, database string, take *raftlogv1.SeriesTake, values map[string]string) error {
	try := func() (err error) {
		var names []string
		var zone string
		read := func(s fsm.NamedSeries, of *series.Series) {
			names, zone = of.Format().Names(), s.Definition.TimeZone
			take.Version, take.SinceUnixNano = s.Version, s.Since
		}
		if !n.state.ReadSeries(database, take.GetName(), read) {
			return seriesNotFound(take.GetName())
		}
		take.UtcOffsetSeconds = n.zones.offset(zone, time.Now())
		take.Values, err = inOrder(names, values)
		return err
	}
	if try() == nil {
		return nil
	}
	if err := n.linearize(ctx); err != nil {
		return err
	}
	return try()
}

// inOrder returns values by their names' order.
func inOrder(names []string, values map[string]string) ([]string, error) {
	all := make([]string, len(names))
	for i, name := range names {
		value, ok := values[name]
		if !ok {
			return nil, invalid(ReasonInvalidSeries, "values", "the value of {%s} is missing", name)
		}
		all[i] = value
	}
	for name := range values {
		if !slices.Contains(names, name) {
			return nil, invalid(ReasonInvalidSeries, "values", "the format has no {%.80s}", name)
		}
	}
	return all, nil
}

// ConfirmNumbers makes numbers final, or none.
func (n *numbers) ConfirmNumbers(ctx context.Context, req *idnodev1.ConfirmNumbersRequest) (*idnodev1.ConfirmNumbersResponse, error) {
	return call(ctx, n.calls, "ConfirmNumbers", req, n.confirmNumbers)
}

func (n *numbers) confirmNumbers(ctx context.Context, req *idnodev1.ConfirmNumbersRequest) (*idnodev1.ConfirmNumbersResponse, error) {
	database, end, err := endOf(req, series.Confirmed, "")
	if err != nil {
		return nil, err
	}
	if err := n.authorize(ctx, rights.Number, database, end.GetName()); err != nil {
		return nil, err
	}
	done, err := n.proposeNumbers(ctx, database, end)
	return &idnodev1.ConfirmNumbersResponse{Numbers: numberMessages(done.Numbers), LogIndex: done.LogIndex}, err
}

// VoidNumbers says that open numbers belong to no document.
func (n *numbers) VoidNumbers(ctx context.Context, req *idnodev1.VoidNumbersRequest) (*idnodev1.VoidNumbersResponse, error) {
	return call(ctx, n.calls, "VoidNumbers", req, n.voidNumbers)
}

func (n *numbers) voidNumbers(ctx context.Context, req *idnodev1.VoidNumbersRequest) (*idnodev1.VoidNumbersResponse, error) {
	done, err := n.endNumbers(ctx, audit.EventSeriesVoid, req, series.Voided, req.GetReason())
	return &idnodev1.VoidNumbersResponse{Numbers: numberMessages(done.Numbers), LogIndex: done.LogIndex}, err
}

// ReleaseNumbers gives open numbers back.
func (n *numbers) ReleaseNumbers(ctx context.Context, req *idnodev1.ReleaseNumbersRequest) (*idnodev1.ReleaseNumbersResponse, error) {
	return call(ctx, n.calls, "ReleaseNumbers", req, n.releaseNumbers)
}

func (n *numbers) releaseNumbers(ctx context.Context, req *idnodev1.ReleaseNumbersRequest) (*idnodev1.ReleaseNumbersResponse, error) {
	done, err := n.endNumbers(ctx, audit.EventSeriesRelease, req, series.Released, "")
	return &idnodev1.ReleaseNumbersResponse{Numbers: numberMessages(done.Numbers), LogIndex: done.LogIndex}, err
}

// ended is what the audit log says of numbers that are not used: all keys are too many.
type ended struct {
	Numbers  int    `json:"numbers"`
	FirstKey string `json:"first_key"`
	Reason   string `json:"reason,omitempty"`
}

// ending is a request that names numbers that are confirmed, voided or released.
type ending interface {
	GetDatabase() string
	GetSeries() string
	GetKeys() []*idnodev1.NumberOf
}

func (n *numbers) endNumbers(
	ctx context.Context, event string, req ending, state series.State, reason string,
) (done op.Numbers, err error) {
	database, end, err := endOf(req, state, reason)
	if err != nil {
		return done, err
	}
	after := ended{Numbers: len(req.GetKeys()), FirstKey: req.GetKeys()[0].GetKey(), Reason: reason}
	err = n.recorded(ctx, event, database, end.GetName(), after, func() (uint64, error) {
		done, err = n.proposeNumbers(ctx, database, end)
		return done.LogIndex, err
	})
	return done, err
}

func endOf(req ending, state series.State, reason string) (string, *raftlogv1.SeriesEnd, error) {
	database, name, err := seriesKey(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return "", nil, err
	}
	keys := make([]series.Bound, len(req.GetKeys()))
	for i, k := range req.GetKeys() {
		keys[i] = series.Bound{Key: k.GetKey(), Number: k.GetNumber()}
	}
	end := &raftlogv1.SeriesEnd{Name: name, State: uint32(state), Reason: reason, Keys: op.SeriesKeys(keys)}
	return database, end, checkSeriesKeys(func(yield func(string) bool) {
		for _, k := range keys {
			if !yield(k.Key) {
				return
			}
		}
	}, len(keys))
}

// CloseScope ends a scope, and returns its last number.
func (n *numbers) CloseScope(ctx context.Context, req *idnodev1.CloseScopeRequest) (*idnodev1.CloseScopeResponse, error) {
	return call(ctx, n.calls, "CloseScope", req, n.closeScope)
}

func (n *numbers) closeScope(ctx context.Context, req *idnodev1.CloseScopeRequest) (*idnodev1.CloseScopeResponse, error) {
	database, name, err := seriesKey(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return nil, err
	}
	scope := &raftlogv1.SeriesCloseScope{Name: name, Scope: req.GetScope()}
	last, err := n.change(ctx, audit.EventSeriesClose, database, name, req.GetScope(), scope, true)
	return &idnodev1.CloseScopeResponse{Last: last.GetValue(), LogIndex: last.GetLogIndex()}, err
}

// seriesKey checks and folds the name of a series, which is in a field.
func seriesKey(database, name, field string) (foldedDatabase, foldedName string, err error) {
	if foldedDatabase, err = databaseKey(database); err != nil {
		return "", "", err
	}
	if err := docid.ValidateTag(name, docid.DefaultSeparator); err != nil {
		bad := badForm(err, field)
		bad.Reason = ReasonInvalidName // A series is named by the rules of tags.
		return "", "", bad
	}
	foldedName = docid.Fold(name)
	return foldedDatabase, foldedName, checkFolded(foldedName, docid.MaxNameBytes, ReasonInvalidName, field)
}

// checkSeriesKeys bounds the keys of a call. The state judges each of them.
func checkSeriesKeys(keys func(yield func(string) bool), count int) error {
	size := 0
	if count <= series.MaxKeys {
		for key := range keys {
			size += len(key)
		}
	}
	return checkSeriesSize("keys", count, size)
}

// checkSeriesSize bounds the numbers of a call in a field, and the sum of their keys in bytes.
func checkSeriesSize(field string, count, size int) error {
	if count < 1 || count > series.MaxKeys {
		return invalid(ReasonInvalidSeries, field, "there are %d %s, not 1 to %d", count, field, series.MaxKeys)
	}
	if size > MaxSeriesKeyBytes {
		return invalid(ReasonInvalidSeries, field, "the keys have %d bytes together, at most %d are allowed", size, MaxSeriesKeyBytes)
	}
	return nil
}

func seriesNotFound(name string) *Error {
	return &Error{Code: NotFound, Reason: ReasonSeriesNotFound, Field: "series", Message: "there is no series " + name}
}
