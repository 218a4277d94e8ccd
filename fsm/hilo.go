package fsm

import (
	"errors"
	"math"
	"time"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/fsm/table"
	"github.com/idnode/idnode/hilo"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

type foundHiLo struct {
	inTable[packedHiLo]
	counter hilo.Counter
}

type hiloStore struct {
	counters nameTable[packedHiLo]
	// taken is no part of the state: it is told of numbers that were taken otherwise than
	// by a range, and may be nil.
	taken func(database, tag string, upTo int64)
}

func newHiLos(databases *databaseStore) hiloStore {
	return hiloStore{counters: nameTable[packedHiLo]{
		Table: table.New[packedHiLo](), databases: databases,
		limit: settingMaxHiLos, what: "HiLo tag", field: "tag", record: hashHiLo,
	}}
}

// tell reports to taken that the numbers of a known tag up to upTo are taken.
func (s *hiloStore) tell(db uint32, tag string, upTo int64) {
	if s.taken != nil {
		database, _ := s.counters.databases.names.Get(db)
		s.taken(database, tag, upTo)
	}
}

// tellAll reports to taken that the numbers of every tag are.
func (s *hiloStore) tellAll(upTo int64) {
	if s.taken != nil {
		s.taken("", "", upTo)
	}
}

// find looks a counter up; that of an unknown tag is at the floor.
func (s *hiloStore) find(db uint32, tag string, floor floor) foundHiLo {
	f := foundHiLo{inTable: s.counters.find(db, tag), counter: floor.hilo()}
	if f.exists {
		f.counter = f.value.counter()
	}
	return f
}

// put stores the new counter of a name that find returned.
func (s *hiloStore) put(f foundHiLo, now hilo.Counter) { s.counters.put(f.inTable, packHiLo(now)) }

func (s *hiloStore) skipAhead(by int64) int {
	return s.counters.changeAll(func(p packedHiLo) packedHiLo {
		c := p.counter()
		return packHiLo(hilo.Counter{Max: plus(c.Max, by), Peak: plus(c.Peak, by)})
	})
}

func (s *hiloStore) records() records {
	m := &raftlogv1.HiLoRecord{}
	record := &raftlogv1.SnapshotRecord{Record: &raftlogv1.SnapshotRecord_Hilo{Hilo: m}}
	return recordsIn(s.counters.Table, func(e table.Entry[packedHiLo]) *raftlogv1.SnapshotRecord {
		c := e.Value.counter()
		m.Database, m.Tag, m.Max, m.Peak = e.Database, e.Name, c.Max, c.Peak
		m.Outstanding = m.Outstanding[:0]
		for _, o := range c.Outstanding {
			m.Outstanding = append(m.Outstanding, &raftlogv1.OutstandingRange{Low: o.Low, High: o.High, Token: o.Token, Holder: HolderOf(o)})
		}
		return record
	})
}

func (s *hiloStore) restore(m *raftlogv1.HiLoRecord) error {
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
	return s.counters.restore(m.GetDatabase(), m.GetTag(), docid.MaxNameBytes, packHiLo(counter))
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
	if err := c.hilos.counters.checkNew(o.Database, found.inTable); err != nil {
		return dst, err
	}
	counter, issued, failed := found.counter.Next(size, next.GetLastMax(), next.GetToken(), holder)
	if failed != nil {
		return dst, refuseHiLo(failed, found)
	}
	if next.GetMaxHigh() > 0 && issued.High > next.GetMaxHigh() {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED, "tag",
			"the next range of %.200q would end at %d, above the %d that the caller allows", found.name, issued.High, next.GetMaxHigh())
	}
	c.databases.use(o.Database)
	c.hilos.put(found, counter)
	if issued.Low-1 > found.counter.Max {
		c.hilos.tell(found.db, found.name, issued.Low-1)
		dst = op.AppendBefore(dst, found.counter.Max) // The caller's limit counts skipped numbers.
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
// forged return would issue numbers twice.
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
	if err := c.hilos.counters.checkNew(o.Database, found.inTable); err != nil {
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
	c.hilos.tell(found.db, found.name, counter.Max)
	return op.AppendValue(dst, counter.Max), nil
}

func refuseHiLo(err error, f foundHiLo) *refusal {
	switch {
	case errors.Is(err, hilo.ErrExhausted):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_COUNTER_EXHAUSTED, "tag",
			"the counter of %.200q is at %d; no range is left", f.name, f.counter.Max)
	case errors.Is(err, hilo.ErrLastMax):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_LAST_MAX_INVALID, "last_max",
			"is more than %d above %d, the counter of %.200q", int64(hilo.MaxAhead), f.counter.Max, f.name)
	case errors.Is(err, hilo.ErrConflict):
		return refuse(raftlogv1.RefusalReason_REFUSAL_REASON_CONCURRENCY, "expected",
			"the counter of %.200q is at %d", f.name, f.counter.Max)
	default:
		return invalid("", "%v", err)
	}
}
