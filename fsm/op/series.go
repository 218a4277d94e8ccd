package op

import (
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

// small returns a number of an enumeration; one that does not fit is the greatest, which
// none has.
func small(v uint32) uint8 { return uint8(min(v, math.MaxUint8)) }

// SeriesDefinition returns a definition as it is in the log.
func SeriesDefinition(d series.Definition) *raftlogv1.SeriesDefinition {
	return &raftlogv1.SeriesDefinition{
		Format: d.Format, ResetBy: uint32(d.Reset), Order: uint32(d.Order), OnRelease: uint32(d.OnRelease), OnExpiry: uint32(d.OnExpiry),
		ExpiresInNanos: int64(d.ExpiresIn), MaxOpen: d.MaxOpen, MaxKeys: d.MaxKeys, TimeZone: d.TimeZone,
		MaxAheadDays: d.MaxAheadDays,
	}
}

// DefinitionOf returns the definition in the log.
func DefinitionOf(m *raftlogv1.SeriesDefinition) series.Definition {
	return series.Definition{
		Format: m.GetFormat(), Reset: format.Reset(small(m.GetResetBy())), Order: series.Order(small(m.GetOrder())),
		OnRelease: series.OnRelease(small(m.GetOnRelease())), OnExpiry: series.OnExpiry(small(m.GetOnExpiry())),
		ExpiresIn: time.Duration(m.GetExpiresInNanos()), MaxOpen: m.GetMaxOpen(), MaxKeys: m.GetMaxKeys(), TimeZone: m.GetTimeZone(),
		MaxAheadDays: m.GetMaxAheadDays(),
	}
}

// SeriesBegins returns the begins of scopes as they are in the log.
func SeriesBegins(begins []series.Begin) (all []*raftlogv1.SeriesBegin) {
	for _, b := range begins {
		all = append(all, &raftlogv1.SeriesBegin{Scope: b.Scope, First: b.First})
	}
	return all
}

// BeginsOf returns the begins of scopes in the log.
func BeginsOf(all []*raftlogv1.SeriesBegin) (begins []series.Begin) {
	for _, m := range all {
		begins = append(begins, series.Begin{Scope: m.GetScope(), First: m.GetFirst()})
	}
	return begins
}

// SeriesNumber returns a number as it is in a result.
func SeriesNumber(n series.Number) *raftlogv1.SeriesNumber {
	return &raftlogv1.SeriesNumber{
		Key: n.Key, Label: n.Label, Scope: n.Scope, Number: n.Number, Text: n.Text, State: uint32(n.State), Overdue: n.Overdue,
		Date: int32(n.Date), TakenUnixNano: n.Taken, ExpiresUnixNano: n.Expires, Reason: n.Reason,
	}
}

// NumberOf returns the number in a result.
func NumberOf(m *raftlogv1.SeriesNumber) series.Number {
	return series.Number{
		Key: m.GetKey(), Label: m.GetLabel(), Scope: m.GetScope(), Number: m.GetNumber(), Text: m.GetText(),
		State: series.State(small(m.GetState())), Overdue: m.GetOverdue(),
		Date: format.Date(m.GetDate()), Taken: m.GetTakenUnixNano(), Expires: m.GetExpiresUnixNano(), Reason: m.GetReason(),
	}
}

// SeriesNumbers returns numbers as the answer of SeriesTake and SeriesEnd.
func SeriesNumbers(numbers []series.Number) *raftlogv1.SeriesNumbers {
	m := &raftlogv1.SeriesNumbers{Numbers: make([]*raftlogv1.SeriesNumber, len(numbers))}
	for i, n := range numbers {
		m.Numbers[i] = SeriesNumber(n)
	}
	return m
}

// SeriesLast returns the last number of a scope as it is in the log.
func SeriesLast(l series.Last) *raftlogv1.SeriesLast {
	return &raftlogv1.SeriesLast{Scope: l.Scope, Last: l.Last}
}

// LastOf returns the last number of a scope in the log.
func LastOf(m *raftlogv1.SeriesLast) series.Last {
	return series.Last{Scope: m.GetScope(), Last: m.GetLast()}
}

// SeriesInBooks returns what the books have of a scope as it is in the log.
func SeriesInBooks(b series.InBooks) *raftlogv1.SeriesInBooks {
	m := &raftlogv1.SeriesInBooks{Scope: b.Scope, Last: b.Last, Closed: b.Closed}
	if b.DateGiven {
		m.LastDate = proto.Int32(int32(b.LastDate))
	}
	return m
}

// InBooksOf returns what the books have of a scope in the log.
func InBooksOf(m *raftlogv1.SeriesInBooks) series.InBooks {
	return series.InBooks{
		Scope: m.GetScope(), Last: m.GetLast(), LastDate: format.Date(m.GetLastDate()), DateGiven: m.LastDate != nil, Closed: m.GetClosed(),
	}
}

// SeriesKeys returns keys and their numbers as they are in the log.
func SeriesKeys(all []series.Bound) []*raftlogv1.SeriesKey {
	keys := make([]*raftlogv1.SeriesKey, len(all))
	for i, b := range all {
		keys[i] = &raftlogv1.SeriesKey{Key: b.Key, Number: b.Number}
	}
	return keys
}

// BoundsOf returns keys and their numbers in the log.
func BoundsOf(keys []*raftlogv1.SeriesKey) []series.Bound {
	all := make([]series.Bound, len(keys))
	for i, k := range keys {
		all[i] = series.Bound{Key: k.GetKey(), Number: k.GetNumber()}
	}
	return all
}

// SeriesOrigin returns what a piece's numbers depend on, as it is in a record.
func SeriesOrigin(o series.Origin) *raftlogv1.SeriesOrigin {
	return &raftlogv1.SeriesOrigin{
		SinceUnixNano: o.Since, Version: o.Version, VoidedByUnixNano: o.VoidedBy, ReleasedVoided: o.ReleasedVoided, KeysStay: o.KeysStay,
	}
}

// SeriesOriginOf returns what a record's numbers depend on.
func SeriesOriginOf(m *raftlogv1.SeriesOrigin) series.Origin {
	return series.Origin{
		Since: m.GetSinceUnixNano(), Version: m.GetVersion(), VoidedBy: m.GetVoidedByUnixNano(),
		ReleasedVoided: m.GetReleasedVoided(), KeysStay: m.GetKeysStay(),
	}
}

// FillSeriesPiece sets the numbers of a record, and reuses its memory: a snapshot has very
// many.
func FillSeriesPiece(m *raftlogv1.SeriesNumbersRecord, p series.Piece) {
	m.Scope, m.Closed, m.Begin, m.First = p.Scope, p.Closed, p.Begin, p.First
	for len(m.Numbers) < len(p.Numbers) {
		m.Numbers = append(m.Numbers, &raftlogv1.SeriesStored{})
	}
	m.Numbers = m.Numbers[:len(p.Numbers)]
	for i, n := range p.Numbers {
		s := m.GetNumbers()[i]
		s.Key, s.Label, s.State, s.Shared = n.Key, n.Label, uint32(n.State), n.Shared
		s.Date, s.TakenUnixNano, s.ExpiresUnixNano, s.Reason = int32(n.Date), n.Taken, n.Expires, n.Reason
	}
}

// SeriesPieceOf returns the numbers in a record.
func SeriesPieceOf(m *raftlogv1.SeriesNumbersRecord) series.Piece {
	p := series.Piece{
		Scope: m.GetScope(), Closed: m.GetClosed(), Begin: m.GetBegin(), First: m.GetFirst(),
		Numbers: make([]series.Stored, len(m.GetNumbers())),
	}
	for i, n := range m.GetNumbers() {
		p.Numbers[i] = series.Stored{
			Key: n.GetKey(), Label: n.GetLabel(), State: series.State(small(n.GetState())), Shared: n.GetShared(),
			Date: format.Date(n.GetDate()), Taken: n.GetTakenUnixNano(), Expires: n.GetExpiresUnixNano(), Reason: n.GetReason(),
		}
	}
	return p
}
