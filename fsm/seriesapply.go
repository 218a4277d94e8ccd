package fsm

import (
	"time"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// maxUTCOffset is above that of every zone, in seconds.
const maxUTCOffset = 18 * 60 * 60

// apply runs an operation on series, appending its answer to dst. A refused operation changes only
// the series' time, and what expires by it.
func (s *seriesStore) apply(dst []byte, now moment, o *op.Operation, floor floor) ([]byte, *refusal) {
	if err := checkDatabase(o); err != nil {
		return dst, err
	}
	switch o.Kind {
	case op.KindSeriesDefine:
		return s.define(dst, now, o, floor)
	case op.KindSeriesTake:
		return s.take(dst, now, o)
	case op.KindSeriesEnd:
		return s.end(dst, now, o)
	case op.KindSeriesClose:
		return s.closeScope(dst, now, o)
	case op.KindSeriesResume:
		return s.resume(dst, now, o)
	case op.KindSeriesReconcile:
		return s.reconcile(dst, now, o)
	case op.KindSeriesImport:
		return s.importRecord(dst, now, o)
	case op.KindSeriesDelete:
		return s.delete(dst, now, o)
	default:
		return dst, invalid("kind", "is of no operation on series")
	}
}

// define begins a series, or changes its definition.
func (s *seriesStore) define(dst []byte, now moment, o *op.Operation, floor floor) ([]byte, *refusal) {
	var m raftlogv1.SeriesDefine
	if err := decodePayload(o, &m); err != nil {
		return dst, err
	}
	if err := checkText("name", m.GetName(), docid.MaxNameBytes); err != nil {
		return dst, err
	}
	i := s.find(s.databases.numberOf(o.Database), m.GetName())
	if i == nil {
		return s.begin(dst, now, o, &m, floor)
	}
	d, begins := op.DefinitionOf(m.GetDefinition()), op.BeginsOf(m.GetBegins())
	if i.series.Repeats(d, m.GetExpectedVersion(), begins...) {
		return op.AppendValue(dst, m.GetExpectedVersion()+1), nil
	}
	if full := s.roomForScopes(o.Database, i.series, begun(begins)); full != nil {
		return dst, full
	}
	err := i.series.Redefine(now.unixNano, d, m.GetExpectedVersion(), begins...)
	s.changed(i)
	return op.AppendValue(dst, m.GetExpectedVersion()+1), refuseSeries(err)
}

func (s *seriesStore) begin(dst []byte, now moment, o *op.Operation, m *raftlogv1.SeriesDefine, floor floor) ([]byte, *refusal) {
	fresh, refused := s.fresh(o.Database, m, floor)
	if refused != nil {
		return dst, refused
	}
	fresh.BeginAt(now.unixNano)
	s.databases.use(o.Database)
	s.add(s.databases.numberOf(o.Database), m.GetName(), fresh)
	_, version := fresh.Definition()
	return op.AppendValue(dst, version), nil
}

// fresh returns a new series. If the state does not know all names that were used, a series of
// this name may have given numbers: the new series begins suspended.
func (s *seriesStore) fresh(database []byte, m *raftlogv1.SeriesDefine, floor floor) (*series.Series, *refusal) {
	if m.GetExpectedVersion() != 0 {
		return nil, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "expected_version",
			"is %d, and there is no series %.200q", m.GetExpectedVersion(), m.GetName())
	}
	if err := checkSeriesName(m.GetName()); err != nil {
		return nil, err
	}
	fresh, err := series.New(op.DefinitionOf(m.GetDefinition()), op.BeginsOf(m.GetBegins())...)
	if err != nil {
		return nil, refuseSeries(err)
	}
	scopes, bytes := fresh.Scopes()
	if full := s.databases.roomFor(database, 1+int(scopes), len(m.GetName())+int(bytes)); full != nil {
		return nil, full
	}
	if floor.series {
		fresh.Suspend()
	}
	return fresh, nil
}

func noSeries(name string) *refusal {
	return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_NOT_FOUND, "series", "there is no series %.200q", name)
}

func (s *seriesStore) in(o *op.Operation, name string, change func(*series.Series) error) *refusal {
	i := s.find(s.databases.numberOf(o.Database), name)
	if i == nil {
		return noSeries(name)
	}
	err := change(i.series)
	s.changed(i)
	return refuseSeries(err)
}

// delete forgets a series without final numbers.
func (s *seriesStore) delete(dst []byte, now moment, o *op.Operation) ([]byte, *refusal) {
	var m raftlogv1.SeriesDelete
	if err := decodePayload(o, &m); err != nil {
		return dst, err
	}
	i := s.find(s.databases.numberOf(o.Database), m.GetName())
	if i == nil {
		return dst, noSeries(m.GetName())
	}
	if err := i.series.CheckDelete(now.unixNano, m.GetExpectedVersion()); err != nil {
		return dst, refuseSeries(err)
	}
	s.remove(i)
	return dst, nil
}

func (s *seriesStore) take(dst []byte, now moment, o *op.Operation) ([]byte, *refusal) {
	var m raftlogv1.SeriesTake
	if err := decodePayload(o, &m); err != nil {
		return dst, err
	}
	if offset := m.GetUtcOffsetSeconds(); offset < -maxUTCOffset || offset > maxUTCOffset {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_INVALID, "date", "the offset from UTC is %d seconds", offset)
	}
	q := series.Request{
		Values: m.GetValues(), Date: format.Date(m.GetDate()), DateGiven: m.Date != nil,
		Today: format.DateAt(now.unixNano, m.GetUtcOffsetSeconds()),
		Keys:  m.GetKeys(), Label: m.GetLabel(), ExpiresIn: time.Duration(m.GetExpiresInNanos()),
	}
	if !q.DateGiven {
		q.Date = q.Today
	}
	var given *raftlogv1.SeriesNumbers
	refused := s.in(o, m.GetName(), func(i *series.Series) error {
		if err := i.CheckPresent(m.GetVersion(), m.GetSinceUnixNano()); err != nil {
			return err
		}
		if full := s.roomForNew(o.Database, i, q.Keys, i.Begins(now.unixNano, q)); full != nil {
			return full
		}
		numbers, err := i.Take(now.unixNano, q)
		given = op.SeriesNumbers(numbers)
		if before, ok := i.Before(numbers); ok {
			given.Before = op.SeriesLast(before)
		}
		return err
	})
	if refused != nil {
		return dst, refused
	}
	return op.AppendAnswer(dst, given), nil
}

// roomForNew refuses keys that a series does not know, and a scope that begins, if a limit of
// names is reached. The scope is "" if none begins.
func (s *seriesStore) roomForNew(database []byte, i *series.Series, keys []string, scope string) *refusal {
	names, bytes := i.Unknown(keys)
	if scope != "" {
		names, bytes = names+1, bytes+int64(len(scope))
	}
	return s.databases.roomFor(database, int(names), int(bytes))
}

// begun returns the scopes that some begins make.
func begun(begins []series.Begin) (scopes [][]string) {
	for _, b := range begins {
		if b.First > 1 {
			scopes = append(scopes, b.Scope)
		}
	}
	return scopes
}

// roomForScopes refuses scopes that a series does not have, if a limit of names is reached.
func (s *seriesStore) roomForScopes(database []byte, i *series.Series, scopes [][]string) *refusal {
	names, bytes := i.NewScopes(scopes)
	return s.databases.roomFor(database, int(names), int(bytes))
}

// end gives open numbers their last state.
func (s *seriesStore) end(dst []byte, now moment, o *op.Operation) ([]byte, *refusal) {
	var m raftlogv1.SeriesEnd
	if err := decodePayload(o, &m); err != nil {
		return dst, err
	}
	keys := op.BoundsOf(m.GetKeys())
	var numbers []series.Number
	refused := s.in(o, m.GetName(), func(i *series.Series) (err error) {
		switch m.GetState() {
		case uint32(series.Confirmed):
			numbers, err = i.Confirm(now.unixNano, keys)
		case uint32(series.Voided):
			numbers, err = i.Void(now.unixNano, keys, m.GetReason())
		case uint32(series.Released):
			numbers, err = i.Release(now.unixNano, keys)
		default:
			err = &series.InvalidError{Field: "state", Detail: "is no last state of a number"}
		}
		return err
	})
	if refused != nil {
		return dst, refused
	}
	return op.AppendAnswer(dst, op.SeriesNumbers(numbers)), nil
}

func (s *seriesStore) closeScope(dst []byte, now moment, o *op.Operation) ([]byte, *refusal) {
	var m raftlogv1.SeriesCloseScope
	if err := decodePayload(o, &m); err != nil {
		return dst, err
	}
	var last int64
	refused := s.in(o, m.GetName(), func(i *series.Series) (err error) {
		last, err = i.CloseScope(now.unixNano, m.GetScope())
		return err
	})
	return op.AppendValue(dst, last), refused
}

func (s *seriesStore) resume(dst []byte, now moment, o *op.Operation) ([]byte, *refusal) {
	var m raftlogv1.SeriesResume
	if err := decodePayload(o, &m); err != nil {
		return dst, err
	}
	books, scopes := make([]series.InBooks, len(m.GetBooks())), make([][]string, len(m.GetBooks()))
	for i, b := range m.GetBooks() {
		books[i], scopes[i] = op.InBooksOf(b), b.GetScope()
	}
	return dst, s.in(o, m.GetName(), func(i *series.Series) error {
		if full := s.roomForScopes(o.Database, i, scopes); full != nil {
			return full
		}
		return i.Resume(now.unixNano, books, m.GetMore())
	})
}

// reconcile says what the books have of unknown numbers.
func (s *seriesStore) reconcile(dst []byte, now moment, o *op.Operation) ([]byte, *refusal) {
	var m raftlogv1.SeriesReconcile
	if err := decodePayload(o, &m); err != nil {
		return dst, err
	}
	books, keys := op.BoundsOf(m.GetNumbers()), make([]string, 0, len(m.GetNumbers()))
	for _, b := range books {
		if b.Key != "" {
			keys = append(keys, b.Key)
		}
	}
	var numbers []series.Number
	refused := s.in(o, m.GetName(), func(i *series.Series) (err error) {
		if full := s.roomForNew(o.Database, i, keys, ""); full != nil {
			return full
		}
		numbers, err = i.Reconcile(now.unixNano, m.GetScope(), books, m.GetReason())
		return err
	})
	if refused != nil {
		return dst, refused
	}
	return op.AppendAnswer(dst, op.SeriesNumbers(numbers)), nil
}
