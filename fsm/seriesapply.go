package fsm

import (
	"cmp"
	"errors"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// maxUTCOffset is above that of every zone, in seconds.
const maxUTCOffset = 18 * 60 * 60

// seriesCall is an operation on series that is applied. One that is refused changes only the
// series' time, and what expires by it.
type seriesCall struct {
	*seriesStore
	database []byte
	// now is the cluster's time.
	now   int64
	floor floor
	// dst is what the answer is appended to.
	dst []byte
}

// find returns nil if there is no such series.
func (c *seriesCall) find(name string) *seriesItem {
	return c.seriesStore.find(c.databases.numberOf(c.database), name)
}

// in changes a series.
func (c *seriesCall) in(name string, change func(*series.Series) error) *refusal {
	i := c.find(name)
	if i == nil {
		return noSeries(name)
	}
	return refuseSeries(c.change(i, change))
}

// numbers changes a series, and answers with numbers.
func (c *seriesCall) numbers(name string, change func(*series.Series, *raftlogv1.SeriesNumbers) error) ([]byte, *refusal) {
	answer := &raftlogv1.SeriesNumbers{}
	if refused := c.in(name, func(i *series.Series) error { return change(i, answer) }); refused != nil {
		return nil, refused
	}
	return op.AppendAnswer(c.dst, answer), nil
}

// define begins a series, or changes its definition.
func (c *seriesCall) define(m *raftlogv1.SeriesDefine) ([]byte, *refusal) {
	if err := checkText("name", m.GetName(), docid.MaxNameBytes); err != nil {
		return nil, err
	}
	i := c.find(m.GetName())
	if i == nil {
		return c.begin(m)
	}
	d, answer := series.DefinitionOf(m.GetDefinition()), op.AppendValue(c.dst, m.GetExpectedVersion()+1)
	if i.is.Repeats(d, m.GetExpectedVersion(), m.GetBegins()...) {
		return answer, nil
	}
	if full := c.roomFor(i.is, nil, begun(m.GetBegins())); full != nil {
		return nil, full
	}
	return answer, refuseSeries(c.change(i, func(i *series.Series) error {
		since := i.Since()
		err := i.Redefine(c.now, d, m.GetExpectedVersion(), m.GetBegins()...)
		if i.Since() != since {
			i.Scramble(m.GetSecret())
		}
		return err
	}))
}

func (c *seriesCall) begin(m *raftlogv1.SeriesDefine) ([]byte, *refusal) {
	fresh, refused := c.fresh(m)
	if refused != nil {
		return nil, refused
	}
	fresh.BeginAt(c.now)
	fresh.Scramble(m.GetSecret())
	c.databases.use(c.database)
	c.add(c.databases.numberOf(c.database), m.GetName(), fresh)
	_, version := fresh.Definition()
	return op.AppendValue(c.dst, version), nil
}

// fresh returns a new series. If the state does not know all names that were used, a series of
// this name may have given numbers: the new series begins suspended.
func (c *seriesCall) fresh(m *raftlogv1.SeriesDefine) (*series.Series, *refusal) {
	if m.GetExpectedVersion() != 0 {
		return nil, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "expected_version",
			"is %d, and there is no series %.200q", m.GetExpectedVersion(), m.GetName())
	}
	if err := checkVisible(m.GetName()); err != nil {
		return nil, err
	}
	fresh, err := series.New(series.DefinitionOf(m.GetDefinition()), m.GetBegins()...)
	if err != nil {
		return nil, refuseSeries(err)
	}
	scopes, bytes := fresh.Scopes()
	if full := c.databases.roomFor(c.database, 1+int(scopes), len(m.GetName())+int(bytes)); full != nil {
		return nil, full
	}
	if c.floor.incomplete {
		fresh.Suspend()
	}
	return fresh, nil
}

func noSeries(name string) *refusal {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_NOT_FOUND, "series", "there is no series %.200q", name)
}

// delete forgets a series without final numbers.
func (c *seriesCall) delete(m *raftlogv1.SeriesDelete) ([]byte, *refusal) {
	i := c.find(m.GetName())
	if i == nil {
		return nil, noSeries(m.GetName())
	}
	if err := i.is.At(c.now).CheckDelete(m.GetExpectedVersion()); err != nil {
		return nil, refuseSeries(err)
	}
	c.remove(i)
	return c.dst, nil
}

func (c *seriesCall) take(m *raftlogv1.SeriesTake) ([]byte, *refusal) {
	if offset := m.GetUtcOffsetSeconds(); offset < -maxUTCOffset || offset > maxUTCOffset {
		return nil, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_INVALID, "date", "the offset from UTC is %d seconds", offset)
	}
	return c.numbers(m.GetName(), func(i *series.Series, answer *raftlogv1.SeriesNumbers) (err error) {
		if err := i.CheckPresent(m.GetVersion(), m.GetSinceUnixNano()); err != nil {
			return err
		}
		if full := c.roomFor(i, m.GetKeys(), i.Begins(c.now, m)); full != nil {
			return full
		}
		answer.Numbers, err = i.Take(c.now, m)
		answer.Before = i.Before(answer.GetNumbers())
		answer.Begun = answer.Before == nil && i.Begun(answer.GetNumbers())
		return err
	})
}

// roomFor refuses keys and scopes that a series does not have, if a limit of names is reached.
func (c *seriesCall) roomFor(i *series.Series, keys []string, scopes [][]string) *refusal {
	names, bytes := i.NewNames(keys, scopes)
	return c.databases.roomFor(c.database, int(names), int(bytes))
}

// begun returns the scopes that some begins make.
func begun(begins []*raftlogv1.SeriesBegin) (scopes [][]string) {
	for _, b := range begins {
		if b.GetFirst() > 1 {
			scopes = append(scopes, b.GetScope())
		}
	}
	return scopes
}

// end gives open numbers their last state.
func (c *seriesCall) end(m *raftlogv1.SeriesEnd) ([]byte, *refusal) {
	return c.numbers(m.GetName(), func(i *series.Series, answer *raftlogv1.SeriesNumbers) (err error) {
		answer.Numbers, err = i.End(c.now, m)
		return err
	})
}

func (c *seriesCall) closeScope(m *raftlogv1.SeriesCloseScope) ([]byte, *refusal) {
	var last int64
	refused := c.in(m.GetName(), func(i *series.Series) (err error) {
		last, err = i.CloseScope(c.now, m.GetScope())
		return err
	})
	return op.AppendValue(c.dst, last), refused
}

// allot has a scope give the numbers of a range, or takes a range back.
func (c *seriesCall) allot(m *raftlogv1.SeriesAllot) ([]byte, *refusal) {
	return c.dst, c.in(m.GetName(), func(i *series.Series) error {
		if full := c.roomFor(i, nil, [][]string{m.GetScope()}); full != nil {
			return full
		}
		return i.Allot(c.now, m)
	})
}

func (c *seriesCall) resume(m *raftlogv1.SeriesResume) ([]byte, *refusal) {
	scopes := make([][]string, len(m.GetBooks()))
	for i, b := range m.GetBooks() {
		scopes[i] = b.GetScope()
	}
	return c.dst, c.in(m.GetName(), func(i *series.Series) error {
		if full := c.roomFor(i, nil, scopes); full != nil {
			return full
		}
		return i.Resume(c.now, m.GetBooks(), m.GetMore())
	})
}

// reconcile says what the books have of unknown numbers.
func (c *seriesCall) reconcile(m *raftlogv1.SeriesReconcile) ([]byte, *refusal) {
	return c.numbers(m.GetName(), func(i *series.Series, answer *raftlogv1.SeriesNumbers) (err error) {
		if full := c.roomFor(i, series.KeysInBooks(m.GetNumbers()), nil); full != nil {
			return full
		}
		answer.Numbers, err = i.Reconcile(c.now, m.GetScope(), m.GetNumbers(), m.GetReason())
		return err
	})
}

// importRecord puts a record of a backup into a series. It may be repeated. No limit of names
// refuses it: what a cluster had, another can have again.
//
// Invariant: a series that a record changes is suspended: it or the backup may lack the newest numbers.
func (c *seriesCall) importRecord(m *raftlogv1.SeriesImport) ([]byte, *refusal) {
	switch r := m.GetRecord().(type) {
	case *raftlogv1.SeriesImport_Series:
		more, refused := c.importSeries(r.Series)
		return op.AppendValue(c.dst, more), refused
	case *raftlogv1.SeriesImport_Numbers:
		if r.Numbers.GetOrigin() == nil {
			return nil, invalid("origin", "is missing")
		}
		more, refused := c.merge(r.Numbers.GetName(), func(i *series.Series) (bool, error) { return i.MergeNumbers(r.Numbers) })
		return op.AppendValue(c.dst, more), refused
	default:
		return nil, invalid("record", "is empty")
	}
}

// merge merges into a series. It returns 1 if the record is to be imported again, and else 0.
func (c *seriesCall) merge(name string, merge func(*series.Series) (bool, error)) (more int64, _ *refusal) {
	refused := c.in(name, func(i *series.Series) error {
		again, err := merge(i)
		if again {
			more = 1
		}
		return err
	})
	return more, refused
}

// importSeries begins the series of a backup, or merges it into that of its name. A clock
// that ran ahead does not come along. It returns what merge does.
func (c *seriesCall) importSeries(m *raftlogv1.SeriesRecord) (more int64, _ *refusal) {
	if err := checkText("name", m.GetName(), docid.MaxNameBytes); err != nil {
		return 0, err
	}
	if docid.Fold(m.GetName()) != m.GetName() {
		return 0, invalid("name", "is not folded: the series could not be found")
	}
	m.TimeUnixNano = min(m.GetTimeUnixNano(), c.now)
	if c.find(m.GetName()) != nil {
		return c.merge(m.GetName(), func(i *series.Series) (bool, error) { return i.Merge(m) })
	}
	if err := checkVisible(m.GetName()); err != nil {
		return 0, err
	}
	restored, err := series.NewFromBackup(m)
	if err != nil {
		return 0, refuseSeries(err)
	}
	c.databases.use(c.database)
	c.add(c.databases.numberOf(c.database), m.GetName(), restored)
	return 0, nil
}

// definitionFields are those of a definition, as the public API has them.
var definitionFields = map[string]string{
	"format": "definition.format", "reset": "definition.reset_by", "order": "definition.order",
	"on_release": "definition.on_release", "on_expiry": "definition.on_expiry",
	"max_open": "definition.max_open", "max_keys": "definition.max_keys", "max_ahead_days": "definition.max_ahead_days",
	"time_zone": "definition.time_zone", "max_length": "definition.max_length", "allowed": "definition.allowed",
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
		refused = (*refusal)(known)
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
