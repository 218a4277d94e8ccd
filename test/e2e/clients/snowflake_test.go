package clients

import (
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/client/snowflake"
)

// window is one that the script gave to a worker.
type window struct {
	layout      snowflake.Layout
	worker      int
	from, until int64
}

// addWindow notes the window of an answer, and puts the epoch of its layout where the case says.
func (s *script) addWindow(answer proto.Message, epochAgoMs int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch a := answer.(type) {
	case *idnodev1.AcquireWorkerResponse:
		epoch, l := s.began.UnixMilli()-epochAgoMs, a.GetLayout()
		l.Epoch = timestamppb.New(time.UnixMilli(epoch))
		s.windows = append(s.windows, window{
			layout: snowflake.Layout{
				Epoch: epoch, Unit: l.GetUnit().AsDuration().Milliseconds(),
				TimeBits: int(l.GetTimeBits()), WorkerBits: int(l.GetWorkerBits()), SequenceBits: int(l.GetSequenceBits()),
			},
			worker: int(a.GetWorker()), from: a.GetFrom(), until: a.GetUntil(),
		})
	case *idnodev1.RenewWorkerResponse:
		s.windows[len(s.windows)-1].until = a.GetUntil()
	}
}

// judgeSnowflakes checks that there are n ids which rise, each in a window of its worker, and none of a
// time far before the clock.
func (s *script) judgeSnowflakes(t *testing.T, values []string, n int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(values) != n {
		t.Errorf("there are %d ids, want %d", len(values), n)
	}
	last := int64(-1)
	for _, text := range values {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id <= last {
			t.Fatalf("%s follows %d: %v", text, last, err)
		}
		last = id
		if !s.given(id) {
			t.Fatalf("%d is in no window of %+v", id, s.windows)
		}
	}
}

func (s *script) given(id int64) bool {
	latest := time.Now().Add(100 * time.Millisecond).UnixMilli()
	for _, w := range s.windows {
		units, worker, _ := w.layout.Split(id)
		if worker == w.worker && units >= w.from && units < w.until && w.layout.UnixMilli(units) <= latest {
			return true
		}
	}
	return false
}
