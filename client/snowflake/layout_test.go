package snowflake_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/client/snowflake"
)

var start = time.UnixMilli(1_700_000_000_000)

// layout has a unit of 10 ms.
var layout = snowflake.Layout{Epoch: start.UnixMilli() - 1_000_000, Unit: 10, TimeBits: 45, WorkerBits: 1, SequenceBits: 8}

// TestLayouts: the ready-made ones are valid, and divide ids as their makers do.
func TestLayouts(t *testing.T) {
	for name, l := range snowflake.Layouts {
		if err := l.Check(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		units, w, sequence := l.Split(l.ID(l.End()-1, l.Workers()-1, l.Sequences()-1))
		if units != l.End()-1 || w != l.Workers()-1 || sequence != l.Sequences()-1 {
			t.Errorf("%s: the greatest id is of %d, %d, %d", name, units, w, sequence)
		}
	}
	// A tweet of 2022-06-16T10:31:05.024Z.
	l := snowflake.Layouts["twitter"]
	units, _, _ := l.Split(1_537_379_424_530_448_384)
	if got := time.UnixMilli(l.UnixMilli(units)).UTC().Format("2006-01-02"); got != "2022-06-16" {
		t.Errorf("the tweet is of %s", got)
	}
	if js := snowflake.Layouts["javascript"]; js.TimeBits+js.WorkerBits+js.SequenceBits != 53 {
		t.Error("an id of JavaScript's layout has not 53 bits")
	}
}

// TestWrongLayouts: each is refused with its field.
func TestWrongLayouts(t *testing.T) {
	for field, change := range map[string]func(*snowflake.Layout){
		"layout.epoch":         func(l *snowflake.Layout) { l.Epoch = start.UnixMilli() + 1 },
		"layout.unit":          func(l *snowflake.Layout) { l.Unit = 0 },
		"layout.time_bits":     func(l *snowflake.Layout) { l.TimeBits = 20 },
		"layout.worker_bits":   func(l *snowflake.Layout) { l.WorkerBits = 17 },
		"layout.sequence_bits": func(l *snowflake.Layout) { l.SequenceBits = 0 },
		"layout":               func(l *snowflake.Layout) { l.SequenceBits = 40 },
	} {
		l := layout
		change(&l)
		wrong := (*snowflake.InvalidError)(nil)
		if err := l.Check(start); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%v, want the field %s", err, field)
		}
	}
}

// TestTimesBeforeTheEpoch round down like those after it.
func TestTimesBeforeTheEpoch(t *testing.T) {
	for milli, want := range map[int64]int64{-11: -2, -10: -1, -1: -1, 0: 0, 9: 0, 10: 1} {
		if diff := cmp.Diff(want, layout.At(layout.Epoch+milli)); diff != "" {
			t.Errorf("%d ms: %s", milli, diff)
		}
	}
}
