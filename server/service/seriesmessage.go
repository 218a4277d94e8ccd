package service

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/fsm"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/series/format"
)

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
	return series.Definition{
		Format: m.GetFormat(), Reset: chosen[format.Reset](int32(m.GetResetBy())), Order: chosen[series.Order](int32(m.GetOrder())),
		OnRelease: chosen[series.OnRelease](int32(m.GetOnRelease())), OnExpiry: chosen[series.OnExpiry](int32(m.GetOnExpiry())),
		ExpiresIn: m.GetExpiresIn().AsDuration(), MaxOpen: m.GetMaxOpen(), MaxKeys: m.GetMaxKeys(), TimeZone: m.GetTimeZone(),
		MaxAheadDays: m.GetMaxAheadDays(),
	}
}

func definitionMessage(d series.Definition) *idnodev1.SeriesDefinition {
	m := &idnodev1.SeriesDefinition{
		Format: d.Format, ResetBy: idnodev1.SeriesReset(d.Reset + 1), Order: idnodev1.SeriesOrder(d.Order + 1),
		OnRelease: idnodev1.SeriesOnRelease(d.OnRelease + 1), OnExpiry: idnodev1.SeriesOnExpiry(d.OnExpiry + 1),
		MaxOpen: d.MaxOpen, MaxKeys: d.MaxKeys, TimeZone: d.TimeZone, MaxAheadDays: d.MaxAheadDays,
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

func numberMessage(n *raftlogv1.SeriesNumber) *idnodev1.SeriesNumber {
	m := &idnodev1.SeriesNumber{
		Key: n.GetKey(), Text: n.GetText(), Scope: n.GetScope(), Number: n.GetNumber(), State: idnodev1.NumberState(n.GetState()),
		Overdue: n.GetOverdue(), Label: n.GetLabel(), Reason: n.GetReason(),
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

func scopeMessage(s series.Summary) *idnodev1.ScopeReport {
	return &idnodev1.ScopeReport{
		Scope: s.Scope, Last: s.Last, LastDate: lastDate(s.LastDate), Closed: s.Closed, Before: s.Before, Open: s.Open,
		Overdue: s.Overdue, Confirmed: s.Confirmed, Voided: s.Voided, Released: s.Released, Unknown: s.Unknown,
	}
}

// lastDate is empty for a scope that has no number with a date.
func lastDate(d format.Date) string {
	if d == format.FirstDate {
		return ""
	}
	return d.String()
}
