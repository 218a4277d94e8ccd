// Package snowflake divides Snowflake ids into their parts. It is for idnode's own use: its
// names may change with any release.
package snowflake

import (
	"fmt"
	"time"
)

const (
	// maxBits keeps ids positive in a signed number of 64 bits.
	maxBits = 63
	// maxWorkerBits bounds the workers that a pool has to remember.
	maxWorkerBits = 16
	// maxUnit is the longest unit of time, in milliseconds.
	maxUnit = 1000
	// leastLife is how long a new layout must last.
	leastLife = 2 * 365 * 24 * time.Hour
)

// Layout divides an id into time, worker and sequence, from the highest bit to the lowest.
type Layout struct {
	// Epoch is where the time begins, in milliseconds since 1970 UTC.
	Epoch int64
	// Unit is what the time counts, 1 to 1,000 milliseconds.
	Unit int64
	// TimeBits, WorkerBits and SequenceBits are each at least 1, and at most 63 in all. At most
	// 16 are the worker's.
	TimeBits, WorkerBits, SequenceBits int
}

// Layouts are the ready-made ones.
var Layouts = map[string]Layout{
	// https://github.com/twitter-archive/snowflake/tree/snowflake-2010
	"twitter": {Epoch: 1_288_834_974_657, Unit: 1, TimeBits: 41, WorkerBits: 10, SequenceBits: 12},
	// The bits of https://github.com/sony/sonyflake, which has the 16 of the machine below the sequence.
	"sonyflake-bits": {Epoch: 1_409_529_600_000, Unit: 10, TimeBits: 39, WorkerBits: 16, SequenceBits: 8},
	// https://instagram-engineering.com/sharding-ids-at-instagram-1cf5a71e5a5c
	// Its 41 bits of time have the sign's.
	"instagram": {Epoch: 1_314_220_021_721, Unit: 1, TimeBits: 40, WorkerBits: 13, SequenceBits: 10},
	// 53 bits, which JavaScript's Number holds exactly.
	"javascript": {Epoch: 1_577_836_800_000, Unit: 10, TimeBits: 38, WorkerBits: 7, SequenceBits: 8},
}

// InvalidError says which field of a layout or a request is invalid, in the words of the public
// API, and why.
type InvalidError struct{ Field, Detail string }

func (e *InvalidError) Error() string { return e.Field + " " + e.Detail }

// Invalid returns an *InvalidError.
func Invalid(field, format string, args ...any) error {
	return &InvalidError{field, fmt.Sprintf(format, args...)}
}

// Check refuses a layout that a new pool cannot have. The error is an *InvalidError.
func (l Layout) Check(now time.Time) error {
	if err := l.CheckForm(); err != nil {
		return err
	}
	left := time.UnixMilli(l.UnixMilli(l.End())).Sub(now)
	switch {
	case l.Epoch > now.UnixMilli():
		return Invalid("layout.epoch", "is in the future")
	case left < leastLife:
		return Invalid("layout.time_bits", "end %s from now: at least two years are needed", left.Round(time.Hour))
	}
	return nil
}

// CheckForm checks what does not depend on the time. The error is an *InvalidError.
func (l Layout) CheckForm() error {
	bits := l.TimeBits + l.WorkerBits + l.SequenceBits
	switch {
	case l.Epoch < 0 || l.Epoch >= 1<<52:
		return Invalid("layout.epoch", "is before 1970, or no time of this era")
	case l.Unit < 1 || l.Unit > maxUnit:
		return Invalid("layout.unit", "is %d ms, must be from 1 to %d", l.Unit, maxUnit)
	case l.TimeBits < 1 || l.TimeBits > maxBits:
		return Invalid("layout.time_bits", "is %d, must be from 1 to %d", l.TimeBits, maxBits)
	case l.WorkerBits < 1 || l.WorkerBits > maxWorkerBits:
		return Invalid("layout.worker_bits", "is %d, must be from 1 to %d", l.WorkerBits, maxWorkerBits)
	case l.SequenceBits < 1 || l.SequenceBits > maxBits:
		return Invalid("layout.sequence_bits", "is %d, must be from 1 to %d", l.SequenceBits, maxBits)
	case bits > maxBits:
		return Invalid("layout", "has %d bits, at most %d are allowed", bits, maxBits)
	}
	return nil
}

// Workers is how many workers there are.
func (l Layout) Workers() int { return 1 << l.WorkerBits }

// Sequences is how many ids a worker has in one unit of time.
func (l Layout) Sequences() int64 { return 1 << l.SequenceBits }

// End is the first time that no id has, in units since the epoch.
func (l Layout) End() int64 {
	end := int64(1) << l.TimeBits
	return min(end, (1<<62)/l.Unit) // No time overflows.
}

// At returns a time in whole units since the epoch, which is below 0 before it.
func (l Layout) At(unixMilli int64) int64 {
	since := unixMilli - l.Epoch
	if since < 0 {
		return -((-since + l.Unit - 1) / l.Unit)
	}
	return since / l.Unit
}

// UnixMilli returns when a unit begins, in milliseconds since 1970 UTC.
func (l Layout) UnixMilli(units int64) int64 { return l.Epoch + units*l.Unit }

// Units returns how many units a duration has, rounded up.
func (l Layout) Units(d time.Duration) int64 {
	unit := time.Duration(l.Unit) * time.Millisecond
	units := int64(d / unit)
	if d%unit > 0 {
		units++
	}
	return units
}

// ID joins the parts of an id, each of which is in its range.
func (l Layout) ID(units int64, worker int, sequence int64) int64 {
	return units<<(l.WorkerBits+l.SequenceBits) | int64(worker)<<l.SequenceBits | sequence
}

// Split returns the parts of an id. The time is in units since the epoch.
func (l Layout) Split(id int64) (units int64, worker int, sequence int64) {
	worker = int(id >> l.SequenceBits & (1<<l.WorkerBits - 1))
	return id >> (l.WorkerBits + l.SequenceBits), worker, id & (l.Sequences() - 1)
}
