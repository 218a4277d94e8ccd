package fsm

import (
	"cmp"
	"errors"

	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// seriesRefusals has, for each error of a series without fields of its own, the reason of the
// refusal, and the invalid field of the request.
var seriesRefusals = []struct {
	is     func(error) bool
	reason raftlogv1.RefusalReason
	field  string
}{
	{isError[*series.SuspendedError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SUSPENDED, "series"},
	{isError[*series.ConflictError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_KEY_CONFLICT, "keys"},
	{isError[*series.UnknownKeyError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_KEY_NOT_FOUND, "keys"},
	{isError[*series.UnknownScopeError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_NOT_FOUND, "scope"},
	{isError[*series.ClosedError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_SCOPE_CLOSED, "values"},
	{isError[*series.DateBackError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DATE_BACK, "date"},
	{isError[*series.TooManyOpenError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_TOO_MANY_OPEN, "keys"},
	{isError[*series.FullError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_FULL, "keys"},
	{isError[*format.FullError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_FULL, "keys"},
	{isError[*series.ExpiredError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_EXPIRED, "keys"},
	{isError[*series.StateError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_NUMBER_STATE, "keys"},
	{isError[*series.OtherNumberError], raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "keys"},
	{isError[*series.VersionError], raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "expected_version"},
	{isError[*series.OutdatedError], raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "series"},
	{isError[*series.DiffersError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_DIFFERS, "record"},
	{isError[*series.InUseError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_IN_USE, "name"},
	{isError[*format.CollisionError], raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_INVALID, "definition.format"},
}

func isError[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

// definitionFields are those of a definition, as the public API has them.
var definitionFields = map[string]string{
	"format": "definition.format", "reset": "definition.reset_by", "order": "definition.order",
	"on_release": "definition.on_release", "on_expiry": "definition.on_expiry",
	"max_open": "definition.max_open", "max_keys": "definition.max_keys", "max_ahead_days": "definition.max_ahead_days",
	"time_zone": "definition.time_zone",
}

// refuseSeries translates an error of a series; nil of nil. A refusal stays as it is.
func refuseSeries(err error) *refusal {
	if err == nil {
		return nil
	}
	if r := (*refusal)(nil); errors.As(err, &r) {
		return r
	}
	for _, known := range seriesRefusals {
		if known.is(err) {
			r := refuse(known.reason, known.field, "%v", err)
			if conflict := (*series.ConflictError)(nil); errors.As(err, &conflict) {
				r.number = op.SeriesNumber(conflict.First)
			}
			return r
		}
	}
	field := ""
	if wrong := (*series.InvalidError)(nil); errors.As(err, &wrong) {
		field = wrong.Field
	} else if wrong := (*format.Error)(nil); errors.As(err, &wrong) {
		field = wrong.Field
	}
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_INVALID, cmp.Or(definitionFields[field], field), "%v", err)
}
