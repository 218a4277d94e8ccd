package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/apierror"
)

// MaxSeriesKeyBytes bounds the sum of the keys of one call, in bytes: they must fit into a group
// of the log, with the numbers that their callers expect.
const MaxSeriesKeyBytes = 40_000

// TakeNumbers gives each key a number, or none.
func (n *numbers) TakeNumbers(ctx context.Context, req *idnodev1.TakeNumbersRequest) (*idnodev1.TakeNumbersResponse, error) {
	return admission.Call(ctx, n.Control, "TakeNumbers", req, n.takeNumbers)
}

func (n *numbers) takeNumbers(ctx context.Context, req *idnodev1.TakeNumbersRequest) (*idnodev1.TakeNumbersResponse, error) {
	database, name, err := keyOf(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return nil, err
	}
	keys, size := req.GetKeys(), 0
	for _, key := range keys {
		size += len(key)
	}
	if err := checkSeriesSize("keys", len(keys), size); err != nil {
		return nil, err
	}
	need := rights.Number
	if req.GetNumber() != 0 {
		need = rights.Series
	}
	if err := n.Allow(ctx, need, admission.Target{Database: database, Name: name}, int64(len(keys))); err != nil {
		return nil, err
	}
	take := &raftlogv1.SeriesTake{
		Name: name, Keys: keys, Label: req.GetLabel(), ExpiresInNanos: int64(req.GetExpiresIn().AsDuration()),
		Number: req.GetNumber(), Because: req.GetBecause(),
	}
	if take.Date, err = dateOf(req.GetDate()); err != nil {
		return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "date", "%v", err)
	}
	taken, err := n.take(ctx, database, take, req.GetValues())
	if known := (*apierror.Error)(nil); errors.As(err, &known) && known.Reason == apierror.ReasonConcurrency {
		// This node was behind a definition.
		if err := n.linearize(ctx); err != nil {
			return nil, err
		}
		taken, err = n.take(ctx, database, take, req.GetValues())
	}
	if err != nil {
		return nil, err
	}
	n.events.numbersTaken(database, name, int64(len(keys)))
	res := &idnodev1.TakeNumbersResponse{Numbers: numberMessages(taken.GetNumbers()), LogIndex: taken.LogIndex, ScopeBegun: taken.GetBegun()}
	if before := taken.GetBefore(); before != nil {
		res.Before = &idnodev1.ScopeLast{Scope: before.GetScope(), Last: before.GetLast()}
	}
	return res, nil
}

// take gives numbers by the definition that this node knows. If that is outdated, it changes
// nothing, and the error's reason is ReasonConcurrency.
func (n *numbers) take(ctx context.Context, database string, take *raftlogv1.SeriesTake, values map[string]string) (*op.Numbers, error) {
	if err := n.byDefinition(ctx, database, take, values); err != nil {
		return nil, err
	}
	if err := n.LimitNames(ctx, func() []admission.Target { return n.newIn(database, take) }); err != nil {
		return nil, err
	}
	if take.GetNumber() != 0 {
		return n.enter(ctx, database, take)
	}
	return n.proposeNumbers(ctx, database, take)
}

// entered is what the audit log has of a number that a document had already.
type entered struct {
	Key     string   `json:"key"`
	Number  int64    `json:"number"`
	Values  []string `json:"values"`
	Date    string   `json:"date,omitempty"`
	Because string   `json:"because"`
}

// enter takes the number that a document has already.
func (n *numbers) enter(ctx context.Context, database string, take *raftlogv1.SeriesTake) (*op.Numbers, error) {
	after := entered{Key: take.GetKeys()[0], Number: take.GetNumber(), Values: take.GetValues(), Because: take.GetBecause()}
	if take.Date != nil {
		after.Date = format.Date(take.GetDate()).String()
	}
	result, err := n.change(ctx, audit.EventSeriesEnter, database, take.GetName(), after, take, true)
	return op.NumbersOf(result), err
}

// newIn returns the keys that a series does not know, and the scope that they begin.
func (n *numbers) newIn(database string, take *raftlogv1.SeriesTake) (fresh []admission.Target) {
	of := func(name string) admission.Target {
		return admission.Target{Kind: admission.TargetNumber, Database: database, Name: take.GetName() + "\x00" + name}
	}
	n.state.ReadSeries(database, take.GetName(), func(_ fsm.NamedSeries, s *series.Series) {
		for _, key := range take.GetKeys() {
			if !s.Knows(key) {
				fresh = append(fresh, of(key))
			}
		}
		for _, scope := range s.Begins(time.Now().UnixNano(), take) {
			fresh = append(fresh, of(series.ScopeName(scope)))
		}
	})
	return fresh
}

// proposeNumbers makes a change that is repeatable, answers with numbers, and is not audited.
func (n *numbers) proposeNumbers(ctx context.Context, database string, payload proto.Message) (given *op.Numbers, err error) {
	err = n.proposeAsCaller(ctx, false, true, func(principal *string) error {
		operation, err := op.Envelope{Database: database, Principal: principal}.Encode(payload)
		if err != nil {
			return internalCodec(err)
		}
		answer, err := n.proposer.Propose(ctx, operation)
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
			return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "values", "the value of {%s} is missing", name)
		}
		all[i] = value
	}
	for name := range values {
		if !slices.Contains(names, name) {
			return nil, apierror.Invalid(apierror.ReasonInvalidSeries, "values", "the format has no {%.80s}", name)
		}
	}
	return all, nil
}

// ConfirmNumbers makes numbers final, or none.
func (n *numbers) ConfirmNumbers(ctx context.Context, req *idnodev1.ConfirmNumbersRequest) (*idnodev1.ConfirmNumbersResponse, error) {
	return admission.Call(ctx, n.Control, "ConfirmNumbers", req, n.confirmNumbers)
}

func (n *numbers) confirmNumbers(ctx context.Context, req *idnodev1.ConfirmNumbersRequest) (*idnodev1.ConfirmNumbersResponse, error) {
	database, end, err := endOf(req, series.Confirmed, "")
	if err != nil {
		return nil, err
	}
	if err := n.Authorize(ctx, rights.Number, database, end.GetName()); err != nil {
		return nil, err
	}
	done, err := n.proposeNumbers(ctx, database, end)
	if err != nil {
		return nil, err
	}
	return &idnodev1.ConfirmNumbersResponse{Numbers: numberMessages(done.GetNumbers()), LogIndex: done.LogIndex}, nil
}

// VoidNumbers says that open numbers belong to no document.
func (n *numbers) VoidNumbers(ctx context.Context, req *idnodev1.VoidNumbersRequest) (*idnodev1.VoidNumbersResponse, error) {
	return admission.Call(ctx, n.Control, "VoidNumbers", req, n.voidNumbers)
}

func (n *numbers) voidNumbers(ctx context.Context, req *idnodev1.VoidNumbersRequest) (*idnodev1.VoidNumbersResponse, error) {
	numbers, index, err := n.endNumbers(ctx, audit.EventSeriesVoid, req, series.Voided, req.GetReason())
	return &idnodev1.VoidNumbersResponse{Numbers: numbers, LogIndex: index}, err
}

// ReleaseNumbers gives open numbers back.
func (n *numbers) ReleaseNumbers(ctx context.Context, req *idnodev1.ReleaseNumbersRequest) (*idnodev1.ReleaseNumbersResponse, error) {
	return admission.Call(ctx, n.Control, "ReleaseNumbers", req, n.releaseNumbers)
}

func (n *numbers) releaseNumbers(ctx context.Context, req *idnodev1.ReleaseNumbersRequest) (*idnodev1.ReleaseNumbersResponse, error) {
	numbers, index, err := n.endNumbers(ctx, audit.EventSeriesRelease, req, series.Released, "")
	return &idnodev1.ReleaseNumbersResponse{Numbers: numbers, LogIndex: index}, err
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

func (n *numbers) endNumbers(ctx context.Context, event string, req ending, state series.NumberState, reason string) (
	[]*idnodev1.SeriesNumber, uint64, error,
) {
	database, end, err := endOf(req, state, reason)
	if err != nil {
		return nil, 0, err
	}
	after := ended{Numbers: len(end.GetKeys()), FirstKey: end.GetKeys()[0].GetKey(), Reason: reason}
	return changedNumbers(n.change(ctx, event, database, end.GetName(), after, end, true))
}

func endOf(req ending, state series.NumberState, reason string) (string, *raftlogv1.SeriesEnd, error) {
	database, name, err := keyOf(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return "", nil, err
	}
	end, size := &raftlogv1.SeriesEnd{Name: name, State: uint32(state), Reason: reason}, 0
	for _, k := range req.GetKeys() {
		end.Keys = append(end.Keys, &raftlogv1.SeriesKey{Key: k.GetKey(), Number: k.GetNumber()})
		size += len(k.GetKey())
	}
	return database, end, checkSeriesSize("keys", len(end.GetKeys()), size)
}

// changedNumbers returns the numbers in the result of a change, and its log index.
func changedNumbers(result *raftlogv1.Result, err error) ([]*idnodev1.SeriesNumber, uint64, error) {
	return numberMessages(result.GetSeriesNumbers().GetNumbers()), result.GetLogIndex(), err
}

// reconciled is what the audit log says of numbers that the books answered for.
type reconciled struct {
	Scope       []string `json:"scope"`
	Numbers     int      `json:"numbers"`
	FirstNumber int64    `json:"first_number"`
	// WithoutDocument counts those that are voided.
	WithoutDocument int `json:"without_document"`
}

// ReconcileNumbers confirms unknown numbers whose documents the books have, and voids the
// others, all or none. It may be repeated.
func (n *numbers) ReconcileNumbers(ctx context.Context, req *idnodev1.ReconcileNumbersRequest) (*idnodev1.ReconcileNumbersResponse, error) {
	return admission.Call(ctx, n.Control, "ReconcileNumbers", req, n.reconcileNumbers)
}

func (n *numbers) reconcileNumbers(ctx context.Context, req *idnodev1.ReconcileNumbersRequest) (*idnodev1.ReconcileNumbersResponse, error) {
	database, name, err := keyOf(req.GetDatabase(), req.GetSeries(), "series")
	if err != nil {
		return nil, err
	}
	after := reconciled{Scope: req.GetScope(), Numbers: len(req.GetNumbers())}
	size, books := 0, &raftlogv1.SeriesReconcile{Name: name, Scope: req.GetScope(), Reason: req.GetReason()}
	for _, b := range req.GetNumbers() {
		books.Numbers = append(books.Numbers, &raftlogv1.SeriesKey{Key: b.GetKey(), Number: b.GetNumber()})
		size += len(b.GetKey())
		if b.GetKey() == "" {
			after.WithoutDocument++
		}
	}
	if err := checkSeriesSize("numbers", after.Numbers, size); err != nil {
		return nil, err
	}
	after.FirstNumber = books.GetNumbers()[0].GetNumber()
	numbers, index, err := changedNumbers(n.change(ctx, audit.EventSeriesReconcile, database, name, after, books, true))
	return &idnodev1.ReconcileNumbersResponse{Numbers: numbers, LogIndex: index}, err
}

// checkSeriesSize bounds the numbers of a call in a field, and the sum of their keys in bytes. The
// state judges each key.
func checkSeriesSize(field string, count, size int) error {
	if count < 1 || count > series.MaxKeys {
		return apierror.Invalid(apierror.ReasonInvalidSeries, field, "there are %d %s, not 1 to %d", count, field, series.MaxKeys)
	}
	if size > MaxSeriesKeyBytes {
		return apierror.Invalid(apierror.ReasonInvalidSeries, field, "the keys have %d bytes together, at most %d are allowed", size,
			MaxSeriesKeyBytes)
	}
	return nil
}

func numberMessage(n *raftlogv1.SeriesNumber) *idnodev1.SeriesNumber {
	m := &idnodev1.SeriesNumber{
		Key: n.GetKey(), Text: n.GetText(), Scope: n.GetScope(), Number: n.GetNumber(), State: idnodev1.NumberState(n.GetState()),
		Overdue: n.GetOverdue(), Label: n.GetLabel(), Reason: n.GetReason(), Note: n.GetNote(),
	}
	if n.GetTakenUnixNano() != 0 {
		m.Date, m.Taken = format.Date(n.GetDate()).String(), timestamppb.New(time.Unix(0, n.GetTakenUnixNano()))
	}
	if n.GetExpiresUnixNano() != 0 {
		m.Expires = timestamppb.New(time.Unix(0, n.GetExpiresUnixNano()))
	}
	return m
}

func numberMessages(numbers []*raftlogv1.SeriesNumber) []*idnodev1.SeriesNumber {
	list := make([]*idnodev1.SeriesNumber, len(numbers))
	for i, n := range numbers {
		list[i] = numberMessage(n)
	}
	return list
}
