package series

import (
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series/format"
)

// Request asks for numbers on a day, whatever the time is.
type Request struct {
	Values    []string
	Date      format.Date
	DateGiven bool
	Today     format.Date
	Keys      []string
	Label     string
	ExpiresIn time.Duration
}

// TakeFor is Take for a request.
func (s *Series) TakeFor(now int64, q Request) ([]*raftlogv1.SeriesNumber, error) {
	return s.Take(now, q.Message(now))
}

// Message is a request as the log has it.
func (q Request) Message(now int64) *raftlogv1.SeriesTake {
	m := &raftlogv1.SeriesTake{Values: q.Values, Keys: q.Keys, Label: q.Label, ExpiresInNanos: int64(q.ExpiresIn)}
	m.UtcOffsetSeconds = int32(max(math.MinInt32, int64(q.Today-format.DateAt(now, 0))*24*60*60))
	if date, _ := datesOf(now, m); q.DateGiven || q.Date != date {
		m.Date = proto.Int32(int32(q.Date))
	}
	return m
}

// Confirm, Void and Release are End for each of the states.
func (s *Series) Confirm(now int64, keys []*raftlogv1.SeriesKey) ([]*raftlogv1.SeriesNumber, error) {
	return s.End(now, &raftlogv1.SeriesEnd{State: uint32(Confirmed), Keys: keys})
}

func (s *Series) Void(now int64, keys []*raftlogv1.SeriesKey, reason string) ([]*raftlogv1.SeriesNumber, error) {
	return s.End(now, &raftlogv1.SeriesEnd{State: uint32(Voided), Keys: keys, Reason: reason})
}

func (s *Series) Release(now int64, keys []*raftlogv1.SeriesKey) ([]*raftlogv1.SeriesNumber, error) {
	return s.End(now, &raftlogv1.SeriesEnd{State: uint32(Released), Keys: keys})
}

// Verify is VerifySome of the whole series, and counts again.
func (s *Series) Verify() error {
	var keys int64
	for c := range s.scopes.from(0) {
		n, err := s.verify(c)
		if err != nil {
			return err
		}
		keys += n
	}
	if keys != s.index.len {
		return &VerifyError{Detail: "does not exist, and a key has it"}
	}
	_, _, err := s.verifyLost("", s.lost.Len())
	return err
}

// verify checks a scope, and counts its keys.
func (s *Series) verify(c *scope) (keys int64, err error) {
	var count [Unknown + 1]int64
	var deadlines int64
	for n, r := range c.above(0) {
		if detail := s.wrong(c, n, r); detail != "" {
			return 0, &VerifyError{Scope: c.values, Number: n, Detail: detail}
		}
		count[r.state]++
		if r.state == Open && r.expires != 0 {
			deadlines++
		}
		if r.owner() != "" {
			keys++
		}
	}
	if detail := c.allotted.wrong(c.offset, c.last, s.most()); detail != "" {
		return 0, &VerifyError{Scope: c.values, Number: c.lastNumber(), Detail: "is the last, and the allotments " + detail}
	}
	if count != c.count || deadlines != c.ended(math.MaxInt64) {
		return 0, &VerifyError{Scope: c.values, Number: c.last, Detail: "is the last, and the sums of the states are wrong"}
	}
	return keys, nil
}
