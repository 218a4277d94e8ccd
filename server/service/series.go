package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/docid"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// MaxSeriesKeyBytes is how many bytes the keys of one call have together: they must fit
// into one group of the log, with the numbers that their callers believe they have.
const MaxSeriesKeyBytes = 40_000

// numbers are the use cases of series of document numbers. All but ResumeSeries may be
// repeated: a key has its number, and what has happened already changes nothing.
type numbers struct {
	*calls
	*proposer
	*reader
	zones     zones
	templates templates
}

// DefineSeriesRequest says what a series is to be.
type DefineSeriesRequest struct {
	Database   string
	Name       string
	Definition series.Definition
	// ExpectedVersion is that of the present definition; 0 begins the series.
	ExpectedVersion int64
	// Begins are scopes whose numbers do not begin at 1.
	Begins []series.Begin
	// DryRun changes nothing: the response says what would be.
	DryRun bool
}

// definedAs is what the audit log says of a definition.
type definedAs struct {
	series.Definition
	Begins []series.Begin `json:",omitempty"`
}

// DefineSeries begins a series, or changes its definition.
func (n *numbers) DefineSeries(ctx context.Context, req DefineSeriesRequest) (DefineSeriesResponse, error) {
	return call(ctx, n.calls, "DefineSeries", req, n.defineSeries)
}

func (n *numbers) defineSeries(ctx context.Context, req DefineSeriesRequest) (DefineSeriesResponse, error) {
	database, name, err := seriesKey(req.Database, req.Name, "name")
	if err != nil {
		return DefineSeriesResponse{}, err
	}
	if err := n.authorize(ctx, rights.Series, database, name); err != nil {
		return DefineSeriesResponse{}, err
	}
	if req.DryRun {
		end, err := n.turn(ctx)
		if err != nil {
			return DefineSeriesResponse{}, err
		}
		defer end()
	}
	if !n.zones.has(req.Definition.TimeZone) {
		return DefineSeriesResponse{}, invalid(ReasonInvalidSeries, "definition.time_zone",
			"there is no zone %.80q in the IANA table: names are written as in Europe/Berlin", req.Definition.TimeZone)
	}
	// The state refuses such a format too. To find the two numbers may take long, and it is
	// not to do that while everything else waits for it.
	f, err := format.Define(req.Definition.Format, req.Definition.Reset)
	if collides := (*format.CollisionError)(nil); errors.As(err, &collides) {
		return DefineSeriesResponse{}, invalid(ReasonInvalidSeries, "definition.format", "%v", err)
	}
	var preview SeriesPreview
	if err == nil {
		preview = n.previewOf(f, req)
	}
	define := &raftlogv1.SeriesDefine{
		Name: name, Definition: op.SeriesDefinition(req.Definition), ExpectedVersion: req.ExpectedVersion, Begins: op.SeriesBegins(req.Begins),
	}
	if req.DryRun {
		would, err := n.tryDefinition(ctx, database, define)
		preview.Forgets = would.Forgets
		return DefineSeriesResponse{Version: req.ExpectedVersion + 1, Suspended: would.Suspended, Preview: preview}, err
	}
	if req.ExpectedVersion > 0 {
		// Whether it is refused is for the state to say: it may be a repeated call.
		would, _ := n.state.PreviewSeries(database, time.Now(), define)
		preview.Forgets = would.Forgets
	}
	done, err := n.change(ctx, audit.EventSeriesDefine, database, name, definedAs{req.Definition, req.Begins}, "DefineSeries", define)
	if err != nil {
		return DefineSeriesResponse{}, err
	}
	res, err := n.defined(ctx, database, name, done)
	res.Preview = preview
	return res, err
}

// change proposes and records a change of a series that answers with a number.
func (n *numbers) change(ctx context.Context, event, database, name string, after any, useCase string, payload proto.Message) (done Value, err error) {
	err = n.recorded(ctx, event, database, name, after, func() (uint64, error) {
		result, err := n.propose(ctx, op.Envelope{Database: database}, payload, true)
		done, err = value(useCase, result, err)
		return done.LogIndex, err
	})
	return done, err
}

// recorded makes a change of a series that needs a right of its own, and records it.
func (n *numbers) recorded(ctx context.Context, event, database, name string, after any, do func() (uint64, error)) error {
	if err := n.authorize(ctx, rights.Series, database, name); err != nil {
		return err
	}
	return n.audited(ctx, audit.Record{Event: event, Database: database, Name: name, After: after}, func() (change, error) {
		index, err := do()
		return change{index: index, after: after}, err
	})
}

// TakeNumbersRequest asks for numbers.
type TakeNumbersRequest struct {
	Database, Series string
	// Keys are the documents, each once.
	Keys []string
	// Values are those of the format, by name.
	Values map[string]string
	// Date is the document's date; empty is the present day in the series' zone.
	Date      string
	Label     string
	ExpiresIn time.Duration
}

// NumbersResponse holds numbers, in the order of the keys.
type NumbersResponse op.Numbers

// TakeNumbers gives each key a number, or none.
func (n *numbers) TakeNumbers(ctx context.Context, req TakeNumbersRequest) (NumbersResponse, error) {
	return call(ctx, n.calls, "TakeNumbers", req, n.takeNumbers)
}

func (n *numbers) takeNumbers(ctx context.Context, req TakeNumbersRequest) (NumbersResponse, error) {
	database, name, err := seriesKey(req.Database, req.Series, "series")
	if err != nil {
		return NumbersResponse{}, err
	}
	if err := checkSeriesKeys(slices.Values(req.Keys), len(req.Keys)); err != nil {
		return NumbersResponse{}, err
	}
	if err := n.allow(ctx, rights.Number, target{database: database, name: name}, int64(len(req.Keys))); err != nil {
		return NumbersResponse{}, err
	}
	take := &raftlogv1.SeriesTake{Name: name, Keys: req.Keys, Label: req.Label, ExpiresInNanos: int64(req.ExpiresIn)}
	if req.Date != "" {
		date, err := format.ParseDate(req.Date)
		if err != nil {
			return NumbersResponse{}, invalid(ReasonInvalidSeries, "date", "%v", err)
		}
		take.Date = proto.Int32(int32(date))
	}
	res, err := n.take(ctx, database, take, req.Values)
	if known := (*Error)(nil); !errors.As(err, &known) || known.Reason != ReasonConcurrency {
		return res, err
	}
	// This node was behind a definition.
	if err := n.linearize(ctx); err != nil {
		return NumbersResponse{}, err
	}
	return n.take(ctx, database, take, req.Values)
}

// take gives numbers by the definition that this node knows. One that is not the present one
// changes nothing, and the reason of the error is ReasonConcurrency.
func (n *numbers) take(ctx context.Context, database string, take *raftlogv1.SeriesTake, values map[string]string) (NumbersResponse, error) {
	if err := n.byDefinition(ctx, database, take, values); err != nil {
		return NumbersResponse{}, err
	}
	if err := n.limitNames(ctx, func() []target { return n.newIn(database, take) }); err != nil {
		return NumbersResponse{}, err
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

func (n *numbers) proposeNumbers(ctx context.Context, database string, payload proto.Message) (NumbersResponse, error) {
	var given op.Numbers
	err := n.named(ctx, false, true, func(principal *string) (err error) {
		given, err = op.Envelope{Database: database, Principal: principal}.ProposeNumbers(ctx, n.log.Propose, payload)
		return internalCodec(err)
	})
	return NumbersResponse(given), err
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

// EndNumbersRequest names numbers that are confirmed, voided or released.
type EndNumbersRequest struct {
	Database, Series string
	Keys             []series.Bound
	// Reason is that of numbers that are voided.
	Reason string
}

// ConfirmNumbers makes numbers final, or none.
func (n *numbers) ConfirmNumbers(ctx context.Context, req EndNumbersRequest) (NumbersResponse, error) {
	return call(ctx, n.calls, "ConfirmNumbers", req, func(ctx context.Context, req EndNumbersRequest) (NumbersResponse, error) {
		database, end, err := endOf(req, series.Confirmed)
		if err != nil {
			return NumbersResponse{}, err
		}
		if err := n.authorize(ctx, rights.Number, database, end.GetName()); err != nil {
			return NumbersResponse{}, err
		}
		return n.proposeNumbers(ctx, database, end)
	})
}

// VoidNumbers says that open numbers belong to no document.
func (n *numbers) VoidNumbers(ctx context.Context, req EndNumbersRequest) (NumbersResponse, error) {
	return call(ctx, n.calls, "VoidNumbers", req, func(ctx context.Context, req EndNumbersRequest) (NumbersResponse, error) {
		return n.endNumbers(ctx, audit.EventSeriesVoid, req, series.Voided)
	})
}

// ReleaseNumbers gives open numbers back.
func (n *numbers) ReleaseNumbers(ctx context.Context, req EndNumbersRequest) (NumbersResponse, error) {
	return call(ctx, n.calls, "ReleaseNumbers", req, func(ctx context.Context, req EndNumbersRequest) (NumbersResponse, error) {
		return n.endNumbers(ctx, audit.EventSeriesRelease, req, series.Released)
	})
}

// ended is what the audit log says of numbers that are not used: all keys are too many.
type ended struct {
	Numbers  int    `json:"numbers"`
	FirstKey string `json:"first_key"`
	Reason   string `json:"reason,omitempty"`
}

func (n *numbers) endNumbers(ctx context.Context, event string, req EndNumbersRequest, state series.State) (res NumbersResponse, err error) {
	database, end, err := endOf(req, state)
	if err != nil {
		return res, err
	}
	after := ended{Numbers: len(req.Keys), FirstKey: req.Keys[0].Key, Reason: req.Reason}
	err = n.recorded(ctx, event, database, end.GetName(), after, func() (uint64, error) {
		res, err = n.proposeNumbers(ctx, database, end)
		return res.LogIndex, err
	})
	return res, err
}

// endOf checks a request, and returns its operation.
func endOf(req EndNumbersRequest, state series.State) (string, *raftlogv1.SeriesEnd, error) {
	database, name, err := seriesKey(req.Database, req.Series, "series")
	if err != nil {
		return "", nil, err
	}
	end := &raftlogv1.SeriesEnd{Name: name, State: uint32(state), Reason: req.Reason, Keys: op.SeriesKeys(req.Keys)}
	return database, end, checkSeriesKeys(func(yield func(string) bool) {
		for _, k := range req.Keys {
			if !yield(k.Key) {
				return
			}
		}
	}, len(req.Keys))
}

// ScopeRequest names a scope of a series.
type ScopeRequest struct {
	Database, Series string
	// Scope is the period, where numbers begin again, and the values of the format.
	Scope []string
}

// CloseScope ends a scope, and returns its last number.
func (n *numbers) CloseScope(ctx context.Context, req ScopeRequest) (Value, error) {
	return call(ctx, n.calls, "CloseScope", req, func(ctx context.Context, req ScopeRequest) (Value, error) {
		database, name, err := seriesKey(req.Database, req.Series, "series")
		if err != nil {
			return Value{}, err
		}
		return n.change(ctx, audit.EventSeriesClose, database, name, req.Scope, "CloseScope", &raftlogv1.SeriesCloseScope{Name: name, Scope: req.Scope})
	})
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

// checkSeriesSize bounds what a call has of numbers in a field, whose keys have a size together.
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
