package admission

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/idnode/idnode/access/audit"
	"github.com/idnode/idnode/server/apierror"
)

// auditor remembers records.
type auditor struct {
	records []audit.Record
	// hangs lets records wait until their time is over.
	hangs bool
}

func (a *auditor) Write(ctx context.Context, r audit.Record) error {
	if a.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	a.records = append(a.records, r)
	return nil
}

func (*auditor) Tail(context.Context, int) ([]json.RawMessage, error) { return nil, nil }

func newAudited(a Auditor) *Control {
	return New(Config{
		Audit: a, Tag: func() string { return "A" }, From: func(context.Context) Caller { return Caller{} },
		Logger: slog.New(slog.DiscardHandler),
	})
}

// TestADiskThatHangsHoldsUpNoCall: a call that cannot be recorded is refused in time, and
// the answer of one that was made is given in time.
func TestADiskThatHangsHoldsUpNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &auditor{}
		c, made := newAudited(a), false
		call := func() (Change, error) {
			made, a.hangs = true, true
			return Change{}, nil
		}
		began := time.Now()
		if err := c.Audited(t.Context(), audit.Record{Event: audit.EventSeed}, call); err != nil || !made {
			t.Errorf("the record before was written, and the call is made: %t, %v", made, err)
		}
		made = false
		err := c.Audited(t.Context(), audit.Record{Event: audit.EventSeed}, call)
		if e := apierror.Of(err); e.Code != apierror.CodeUnavailable || e.Reason != apierror.ReasonAuditFailed {
			t.Error(err)
		}
		if took := time.Since(began); made || took != 2*recordTimeout {
			t.Errorf("after %s; the call without a record was made: %t", took, made)
		}
	})
}

// TestDenialsDoNotFillTheDisk: beyond a bound they are counted.
func TestDenialsDoNotFillTheDisk(t *testing.T) {
	a := &auditor{}
	c := newAudited(a)
	const calls = 5_000
	began := time.Now()
	for range calls {
		c.RecordDenial(t.Context(), "NextIdentity", "no role gives the right")
	}
	most := denialsAtOnce + denialsPerSecond*time.Since(began).Seconds() + 1
	if got := len(a.records); got < denialsAtOnce || float64(got) > most {
		t.Errorf("%d records, want %d to %.0f", got, denialsAtOnce, most)
	}
	told := c.denialsLeftOut.Load()
	for _, r := range a.records {
		told += 1 + r.LeftOut
	}
	if told != calls {
		t.Errorf("%d calls are recorded or counted, of %d", told, calls)
	}
}
