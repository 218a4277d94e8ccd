package fsm

import (
	"cmp"
	"errors"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

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
	refused := &refusal{Reason: raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_INVALID, Detail: err.Error()}
	var known *series.Error
	var full *format.FullError
	var collides *format.CollisionError
	var wrong *format.Error
	switch {
	case errors.As(err, &known):
		refused.Reason, refused.Field, refused.SeriesNumber = known.Reason, known.Field, known.First
	case errors.As(err, &full):
		refused.Reason, refused.Field = raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_FULL, "keys"
	case errors.As(err, &collides):
		refused.Field = "format"
	case errors.As(err, &wrong):
		refused.Field = wrong.Field
	}
	refused.Field = cmp.Or(definitionFields[refused.Field], refused.Field)
	return refused
}
