package series

import (
	"math"
	"reflect"
	"slices"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// Order is the order in which a scope's numbers are taken. Each value is stricter than the previous.
type Order uint8

const (
	// OrderAny takes numbers with any date.
	OrderAny Order = iota
	// OrderDates refuses a date before that of the scope's last number.
	OrderDates
	// OrderOneOpen also refuses a number while another is open.
	OrderOneOpen
)

// OnRelease is the state of a released number. Each value is stricter than the next.
type OnRelease uint8

const (
	// ReleaseVoids voids it.
	ReleaseVoids OnRelease = iota
	// ReleaseReusesNewest gives it to another key if it is the scope's last number, or all above it were
	// given back too; else it voids it.
	ReleaseReusesNewest
	// ReleaseReuses gives it to another key, the lowest first.
	ReleaseReuses
)

// OnExpiry is the state of an open number whose time has ended. Each value is stricter than the next.
type OnExpiry uint8

const (
	// ExpiryReports leaves it as it is, and reports it as overdue.
	ExpiryReports OnExpiry = iota
	// ExpiryVoids voids it.
	ExpiryVoids
	// ExpiryReuses gives it to another key, the lowest first. Until then it can be confirmed.
	ExpiryReuses
)

// Definition is what a series is asked to be.
type Definition struct {
	// Format is the template of the texts, and Reset says when numbers begin again at 1.
	Format string
	Reset  format.Reset

	Order     Order
	OnRelease OnRelease
	OnExpiry  OnExpiry

	// ExpiresIn is how long a number stays open without being overdue; 0 is without end.
	ExpiresIn time.Duration
	// MaxOpen is how many numbers of a scope may be open, MaxKeys how many keys the series
	// may know; 0 is without limit.
	MaxOpen, MaxKeys int64
	// MaxAheadDays is how many days a new number's date may be after the present day, if AheadGiven is
	// true. Else it is 1 if dates have an order, because a later date would end the scope, and else 366.
	MaxAheadDays int32
	AheadGiven   bool
	// MaxLength is how many characters a text may have; 0 is without limit.
	MaxLength uint32
	// Allowed has the values that calls may give: of each name, no others; of a name that is not here, any.
	Allowed []*raftlogv1.SeriesAllowed

	// TimeZone is the zone of dates that callers do not give, by its IANA name; "" is UTC. It is stored alone.
	TimeZone string
}

// DefinitionMessage returns a definition as it is in the log.
func DefinitionMessage(d Definition) *raftlogv1.SeriesDefinition {
	m := &raftlogv1.SeriesDefinition{
		Format: d.Format, ResetBy: uint32(d.Reset), Order: uint32(d.Order), OnRelease: uint32(d.OnRelease), OnExpiry: uint32(d.OnExpiry),
		ExpiresInNanos: int64(d.ExpiresIn), MaxOpen: d.MaxOpen, MaxKeys: d.MaxKeys, TimeZone: d.TimeZone,
		MaxLength: d.MaxLength, Allowed: d.Allowed,
	}
	if d.AheadGiven {
		m.MaxAheadDays = &d.MaxAheadDays
	}
	return m
}

// equal reports whether two definitions are one.
func (d Definition) equal(other Definition) bool {
	same := slices.EqualFunc(d.Allowed, other.Allowed, func(a, b *raftlogv1.SeriesAllowed) bool {
		return a.GetName() == b.GetName() && slices.Equal(a.GetValues(), b.GetValues())
	})
	d.Allowed, other.Allowed = nil, nil
	return same && reflect.DeepEqual(d, other)
}

// small returns a choice of the log. One that does not fit is the greatest, which none has.
func small(v uint32) uint8 { return uint8(min(v, math.MaxUint8)) }

// DefinitionOf returns the definition in the log.
func DefinitionOf(m *raftlogv1.SeriesDefinition) Definition {
	return Definition{
		Format: m.GetFormat(), Reset: format.Reset(small(m.GetResetBy())), Order: Order(small(m.GetOrder())),
		OnRelease: OnRelease(small(m.GetOnRelease())), OnExpiry: OnExpiry(small(m.GetOnExpiry())),
		ExpiresIn: time.Duration(m.GetExpiresInNanos()), MaxOpen: m.GetMaxOpen(), MaxKeys: m.GetMaxKeys(), TimeZone: m.GetTimeZone(),
		MaxAheadDays: m.GetMaxAheadDays(), AheadGiven: m != nil && m.MaxAheadDays != nil, MaxLength: m.GetMaxLength(), Allowed: m.GetAllowed(),
	}
}

// check finds what no series can be whose texts have a format.
func (d Definition) check(f *format.Format) error {
	switch {
	case d.Order > OrderOneOpen:
		return invalid("order", "is unknown")
	case d.OnRelease > ReleaseReuses:
		return invalid("on_release", "is unknown")
	case d.OnExpiry > ExpiryReuses:
		return invalid("on_expiry", "is unknown")
	case d.Order != OrderAny && d.OnRelease == ReleaseReuses:
		// A reused number precedes others with earlier dates.
		return invalid("on_release", "gives numbers again, which the order of the dates excludes")
	case d.OnRelease == ReleaseReusesNewest && d.OnExpiry == ExpiryReuses:
		return invalid("on_expiry", "gives numbers again, which reuse-newest excludes")
	case d.Order != OrderAny && d.OnExpiry == ExpiryReuses:
		return invalid("on_expiry", "gives numbers again, which the order of the dates excludes")
	case d.ExpiresIn < 0 || d.ExpiresIn > MaxExpiresIn:
		return invalid("expires_in", "is not from 0 to 3650 days")
	case d.MaxOpen < 0:
		return invalid("max_open", "is below 0")
	case d.MaxKeys < 0:
		return invalid("max_keys", "is below 0")
	case d.MaxAheadDays < 0 || d.MaxAheadDays > MaxAheadDays:
		return invalid("max_ahead_days", "is not from 0 to 3650")
	case len(d.TimeZone) > MaxTimeZoneBytes || !visible(d.TimeZone):
		return invalid("time_zone", "is longer than 64 bytes, or has invisible characters")
	}
	return d.checkTexts(f)
}

// follows finds what a definition does not change once numbers are in the books: what was
// promised of them. Limits and times of later numbers may change either way.
func (d Definition) follows(old Definition) *Error {
	const looser = "is less strict than it was"
	switch {
	case d.Format != old.Format:
		return invalid("format", "cannot change")
	case d.Reset != old.Reset:
		return invalid("reset", "cannot change")
	case d.Order < old.Order:
		return invalid("order", looser)
	case d.OnRelease > old.OnRelease:
		return invalid("on_release", looser)
	case d.OnExpiry > old.OnExpiry:
		return invalid("on_expiry", looser)
	}
	return nil
}

// renumbers reports whether a definition has other texts or periods than an old one.
func (d Definition) renumbers(old Definition) bool {
	return d.Format != old.Format || d.Reset != old.Reset
}

// maxAhead returns how many days a date may be after the present day.
func (d *Definition) maxAhead() format.Date {
	switch {
	case d.AheadGiven:
		return format.Date(d.MaxAheadDays)
	case d.Order != OrderAny:
		return 1
	}
	return 366
}

// openLimit returns how many numbers of a scope may be open; 0 is without limit.
func (d *Definition) openLimit() int64 {
	if d.Order == OrderOneOpen {
		return 1
	}
	return d.MaxOpen
}
