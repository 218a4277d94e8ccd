package fsm

import (
	"cmp"
	"math"
	"time"

	"github.com/idnode/idnode/fsm/op"
	"github.com/idnode/idnode/fsm/table"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/snowflake"
)

// deletedInEntry bounds the names that one entry forgets.
const deletedInEntry = 1000

// databaseDelete forgets names of a database, in as many entries as it takes. Without names a database
// no longer counts. The server-side etags of its name continue: they are no names, and never fall.
//
// A series is deleted before its database, which needs that no document has a permanent number. The windows of a
// pool must have passed, by the leader's clock: new pools begin behind them, whatever that clock is worth.
func (c *contents) databaseDelete(dst []byte, now moment, o op.Operation, _ *raftlogv1.DatabaseDelete) ([]byte, *refusal) {
	db, known := c.databases.number(string(o.Database))
	if !known {
		return op.AppendAnswer(dst, &raftlogv1.DatabaseDeleted{}), nil
	}
	if c.series.in(db) {
		return dst, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_SERIES_IN_USE, "database", "the database has series: delete them first")
	}
	left, before := deletedInEntry, c.databases.used[db].size()
	ended, err := c.pools.forgetAll(&left, db, time.Unix(0, now.unixNano))
	if err != nil {
		return dst, err
	}
	c.floor.windows = max(c.floor.windows, ended)
	for _, hidden := range []bool{false, true} {
		t := c.identities.table(hidden)
		forgetNames(&left, db, t.Table, func(name string) { t.remove(t.find(db, name)) })
	}
	forgetNames(&left, db, c.hilos.counters.Table, func(tag string) {
		c.hilos.tell(db, tag, math.MaxInt64)
		c.hilos.counters.remove(c.hilos.counters.find(db, tag))
	})
	forgetNames(&left, db, c.claims.claimed.Table, func(id string) {
		item := claimItem{db: db, id: id}
		c.claims.release(item)
		c.claims.forgetReleased(item)
	})
	forgetNames(&left, db, c.claims.released, func(id string) { c.claims.forgetReleased(claimItem{db: db, id: id}) })
	after := c.databases.used[db]
	return op.AppendAnswer(dst, &raftlogv1.DatabaseDeleted{Names: before - after.size(), More: after.counts()}), nil
}

// forgetAll forgets the pools of a database, while left, the number of names still to be forgotten, is positive; a
// worker counts as a name. It returns when the last window of those that it looked at ended, in milliseconds since 1970
// UTC. It refuses if a pool's windows have not passed for Apart. Then it only settles when they will pass.
func (s *poolStore) forgetAll(left *int, db uint32, now time.Time) (ended int64, held *refusal) {
	var some []*poolItem
	for e := range s.byName.Of(db, "") {
		if some = append(some, e.Value); len(some) >= *left {
			break
		}
	}
	for _, i := range some {
		end, known := i.is.End()
		if ended = max(ended, end); known && end <= now.Add(-snowflake.Apart).UnixMilli() {
			continue
		}
		held = cmp.Or(held, refuse(raftlogv1.RefusalReason_REFUSAL_REASON_POOL_IN_USE, "database",
			"has the pool %.200q, whose windows have not passed for %v", i.name, snowflake.Apart))
		_ = s.change(i, func(p *snowflake.Pool) error { p.Settle(now); return nil })
	}
	for _, i := range some {
		if held != nil || *left <= 0 {
			break
		}
		*left -= 1 + i.is.Known()
		s.remove(i)
	}
	return ended, held
}

// in reports whether a database has series.
func (s *seriesStore) in(db uint32) bool {
	for range s.byName.Of(db, "") {
		return true
	}
	return false
}

// forgetNames forgets names of a database that a table has, in their order, as long as some are left to be forgotten.
func forgetNames[V any](left *int, db uint32, t *table.Table[V], one func(name string)) {
	var names []string
	for e := range t.Of(db, "") {
		if len(names) >= *left {
			break
		}
		names = append(names, e.Name)
	}
	for _, name := range names {
		one(name)
	}
	*left -= len(names)
}
