package fsm

import (
	"errors"
	"math"
	"time"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/internal/statehash"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

type foundHiLo struct {
	db      uint32
	tag     string
	counter hilo.Counter
	packed  packedHiLo
	ref     table.Ref
	exists  bool
}

type hiloStore struct {
	counters  *table.Table[packedHiLo]
	databases *databaseStore
	hash      statehash.Sum
	// taken is no part of the state: it learns of numbers that something else than a
	// range took, and may be nil.
	taken func(database, tag string, upTo int64)
}

// tell passes on that the numbers of a known tag up to upTo are taken.
func (s *hiloStore) tell(db uint32, tag string, upTo int64) {
	if s.taken != nil {
		s.taken(s.databases.names[db], tag, upTo)
	}
}

// tellAll passes on that those of every tag are.
func (s *hiloStore) tellAll(upTo int64) {
	if s.taken != nil {
		s.taken("", "", upTo)
	}
}

// find looks a counter up; that of an unknown tag is at the floor.
func (s *hiloStore) find(db uint32, tag string, floor floor) foundHiLo {
	f := foundHiLo{db: db, tag: tag, counter: floor.hilo()}
	if f.ref, f.exists = s.counters.Find(db, tag); f.exists {
		f.packed = s.counters.Value(f.ref)
		f.counter = f.packed.counter()
	}
	return f
}

// put stores the new counter of what find returned.
func (s *hiloStore) put(f foundHiLo, now hilo.Counter) {
	if !f.exists {
		s.add(f.db, f.tag, now)
		return
	}
	packed := packHiLo(now)
	s.hash.Remove(hashHiLo(f.db, f.tag, f.packed))
	s.counters.Set(f.ref, packed)
	s.hash.Add(hashHiLo(f.db, f.tag, packed))
}

// add stores a counter that does not exist.
func (s *hiloStore) add(db uint32, tag string, now hilo.Counter) {
	packed := packHiLo(now)
	s.counters.Insert(table.Entry[packedHiLo]{Database: db, Name: tag, Value: packed})
	s.databases.count(db, tag, 1)
	s.hash.Add(hashHiLo(db, tag, packed))
}

// checkNew is databases.checkNew for a counter, if it is new.
func (s *hiloStore) checkNew(database []byte, f foundHiLo) *refusal {
	if f.exists {
		return nil
	}
	return s.databases.checkNew(database, settingMaxHiLos, s.counters.Len(), "tag", f.tag)
}

// eachFrom calls f for the counters from a cursor on, with the number to which returns can
// lower each.
func (s *hiloStore) eachFrom(from floorCursor, f func(k floorCursor, used int64) bool) {
	s.counters.Ascend(from.db, from.name, func(e table.Entry[packedHiLo]) bool {
		counter := e.Value.counter()
		used := counter.Max
		if len(counter.Outstanding) > 0 {
			used = counter.Outstanding[0].Low - 1
		}
		return f(floorCursor{from.kind, e.Database, e.Name}, used)
	})
}

func (s *hiloStore) raise(k floorCursor, to int64) {
	found := s.find(k.db, k.name, floor{})
	s.put(found, raisedHiLo(found.counter, to, 0))
}

func (s *hiloStore) skipAhead(by int64) int {
	s.counters.Freeze().Scan(func(e table.Entry[packedHiLo]) bool {
		found := s.find(e.Database, e.Name, floor{})
		s.put(found, hilo.Counter{Max: plus(found.counter.Max, by), Peak: plus(found.counter.Peak, by)})
		return true
	})
	return s.counters.Len()
}

func (s *hiloStore) restore(m *raftlogv1.HiLoRecord) error {
	if err := s.databases.restoreName(m.GetDatabase(), "HiLo tag", m.GetTag(), docid.MaxNameBytes); err != nil {
		return err
	}
	if len(m.GetOutstanding()) > hilo.MaxOutstanding {
		return corrupt("HiLo tag %q with %d ranges", m.GetTag(), len(m.GetOutstanding()))
	}
	counter := hilo.Counter{Max: m.GetMax(), Peak: m.GetPeak()}
	for _, o := range m.GetOutstanding() {
		r := hilo.Range{Low: o.GetLow(), High: o.GetHigh()}
		if r.High < 0 || r.High > counter.Max { // It could not be packed.
			return corrupt("HiLo tag %q with a range up to %d, above %d", m.GetTag(), r.High, counter.Max)
		}
		counter.Outstanding = append(counter.Outstanding, hilo.Outstanding{Range: r, Token: o.GetToken(), Holder: packedHolder(o.GetHolder())})
	}
	if _, twice := s.counters.Find(m.GetDatabase(), m.GetTag()); twice {
		return corrupt("HiLo tag %q twice", m.GetTag())
	}
	s.add(m.GetDatabase(), m.GetTag(), counter)
	return nil
}

func (c *contents) hiloNext(dst []byte, now moment, o op.Operation, next *raftlogv1.HiLoNext) ([]byte, *refusal) {
	holder, err := holderOf(now, o.Principal, next)
	if err != nil {
		return dst, err
	}
	size, err := hiloSize(now, next)
	if err != nil {
		return dst, err
	}
	if err := checkText("tag", next.GetTag(), docid.MaxNameBytes); err != nil {
		return dst, err
	}
	found := c.hilos.find(c.databases.numberOf(o.Database), next.GetTag(), c.floor)
	if err := c.hilos.checkNew(o.Database, found); err != nil {
		return dst, err
	}
	counter, issued, failed := found.counter.Next(size, next.GetLastMax(), next.GetToken(), holder)
	if failed != nil {
		return dst, refuseHiLo(failed, found)
	}
	if next.GetMaxHigh() > 0 && issued.High > next.GetMaxHigh() {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED, "tag",
			"the next range of %.200q would end at %d, above the %d that the caller allows", found.tag, issued.High, next.GetMaxHigh())
	}
	c.databases.use(o.Database)
	c.hilos.put(found, counter)
	if issued.Low-1 > found.counter.Max {
		c.hilos.tell(found.db, found.tag, issued.Low-1)
		dst = op.AppendBefore(dst, found.counter.Max) // The caller's limit counts what is skipped.
	}
	return op.AppendAnswer(dst, &raftlogv1.HiLoNextResult{
		Low: issued.Low, High: issued.High, Size: size,
		TimeUnixNano: now.unixNano,
		Token:        next.GetToken(),
		ServerTag:    next.GetServerTag(),
		ServerPrefix: next.GetServerPrefix(),
	}), nil
}

func hiloSize(now moment, next *raftlogv1.HiLoNext) (int64, *refusal) {
	size := next.GetSize()
	switch {
	case size < 0 || size > hilo.MaxSize:
		return 0, invalid("size", "is %d, must be from 1 to %d", size, hilo.MaxSize)
	case size > 0:
		return size, nil
	}
	idle := idleTime(now.unixNano, next.GetLastRangeUnixNano())
	return hilo.NextSize(next.GetLastSize(), idle, next.GetHasLastRange()), nil
}

// idleTime is the time from then until now, both in nanoseconds since 1970; no
// time at all if a clock went back.
func idleTime(now, then int64) time.Duration {
	switch idle := now - then; {
	case now <= then:
		return 0
	case idle < 0: // It does not fit.
		return math.MaxInt64
	default:
		return time.Duration(idle)
	}
}

// hiloReturn takes a range back if that is possible. Otherwise it does not refuse, but
// answers that nothing was done. Without a token only the range's holder may return it: a
// forged return would give numbers twice.
func (c *contents) hiloReturn(dst []byte, _ moment, o op.Operation, ret *raftlogv1.HiLoReturn) ([]byte, *refusal) {
	if err := checkText("tag", ret.GetTag(), docid.MaxNameBytes); err != nil {
		return dst, err
	}
	found := c.hilos.find(c.databases.numberOf(o.Database), ret.GetTag(), c.floor)
	r := hilo.Range{Low: ret.GetLow(), High: ret.GetHigh()}
	counter, returned := found.counter, false
	if ret.GetCheckToken() || newestIsOf(counter, o.Principal) {
		counter, returned = counter.Return(r, ret.GetLast(), ret.GetToken(), ret.GetCheckToken())
	}
	if returned {
		c.hilos.put(found, counter)
	}
	return op.AppendAnswer(dst, &raftlogv1.HiLoReturnResult{Returned: returned, Max: counter.Max}), nil
}

// hiloSet raises Max for a client that runs the whole algorithm on its own side.
func (c *contents) hiloSet(dst []byte, _ moment, o op.Operation, set *raftlogv1.HiLoSet) ([]byte, *refusal) {
	if set.GetMax() < 0 {
		return dst, invalid("max", "is %d, must not be negative", set.GetMax())
	}
	if err := checkText("tag", set.GetTag(), docid.MaxNameBytes); err != nil {
		return dst, err
	}
	found := c.hilos.find(c.databases.numberOf(o.Database), set.GetTag(), c.floor)
	if err := c.hilos.checkNew(o.Database, found); err != nil {
		return dst, err
	}
	counter, failed := found.counter.Set(set.GetMax(), set.GetExpected())
	if failed != nil {
		return dst, refuseHiLo(failed, found)
	}
	// The value that is set counts as taken, even if Max was there already: no range comes
	// back.
	counter.Outstanding = nil
	c.databases.use(o.Database)
	c.hilos.put(found, counter)
	c.hilos.tell(found.db, found.tag, counter.Max)
	return op.AppendValue(dst, counter.Max), nil
}

func refuseHiLo(err error, f foundHiLo) *refusal {
	switch {
	case errors.Is(err, hilo.ErrExhausted):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED, "tag",
			"the counter of %.200q is at %d; no range is left", f.tag, f.counter.Max)
	case errors.Is(err, hilo.ErrLastMax):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_LAST_MAX_INVALID, "last_max",
			"is more than %d above %d, the counter of %.200q", int64(hilo.MaxAhead), f.counter.Max, f.tag)
	case errors.Is(err, hilo.ErrConflict):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "expected",
			"the counter of %.200q is at %d", f.tag, f.counter.Max)
	default:
		return invalid("", "%v", err)
	}
}
