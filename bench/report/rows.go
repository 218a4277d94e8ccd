package report

import (
	"github.com/idnode/idnode/bench/result"
	"github.com/idnode/idnode/bench/system"
	"github.com/idnode/idnode/internal/bench"
)

// class is what kind of thing is measured; each has a colour.
type class string

const (
	ours    class = "idnode"
	cluster class = "cluster"
	single  class = "single"
	floor   class = "floor"
)

// row is one thing that was measured with different numbers of callers.
type row struct {
	label string
	class class
	// key lacks the callers.
	key result.Key
}

func idnodeRow(label, op, via string, batch int) row {
	return row{label, ours, result.Key{System: system.NameIdnode, Op: op, Via: via, Batch: batch}}
}

func otherRow(label string, c class, name, op string) row {
	return row{label, c, result.Key{System: name, Op: op, Batch: 1}}
}

// Rows that ratios are made of.
var (
	unary      = idnodeRow("idnode identity, unary", bench.Identity, bench.Unary, 1)
	client     = idnodeRow("idnode identity, Go client", bench.Identity, bench.ViaClient, 1)
	stream     = idnodeRow("idnode identity, stream", bench.Identity, bench.Stream, 1)
	unary100   = idnodeRow("idnode identity, unary, 100 a call", bench.Identity, bench.Unary, 100)
	stream100  = idnodeRow("idnode identity, stream, 100 a call", bench.Identity, bench.Stream, 100)
	serverSide = idnodeRow("idnode server-side, unary", bench.ServerSide, bench.Unary, 1)
	unary1k    = idnodeRow("idnode server-side, unary, 1,000 a call", bench.ServerSide, bench.Unary, 1000)
	stream1k   = idnodeRow("idnode server-side, stream, 1,000 a call", bench.ServerSide, bench.Stream, 1000)
	hiloRange  = idnodeRow("idnode HiLo range of 32, unary", bench.Range, bench.Unary, 32)
	seriesTake = idnodeRow("idnode series number, unary", bench.Series, bench.Unary, 1)
	echo       = row{"an empty gRPC call", floor, result.Key{System: system.NameIdnode, Op: bench.Echo, Via: bench.Unary, Batch: 1}}
	unaryGhz   = idnodeRow("idnode identity, unary, by ghz", bench.Identity, system.ViaGhz, 1)
	etcd       = otherRow("etcd put, 3 members", cluster, system.NameEtcd, "put")
	etcdGhz    = row{"etcd put, 3 members, by ghz", cluster, result.Key{System: system.NameEtcd, Op: "put", Via: system.ViaGhz, Batch: 1}}
	bareRaft   = otherRow("bare Raft apply, 3 members", cluster, system.NameRaft, "apply")
	redis      = otherRow("Redis INCR, 1 server", single, system.NameRedis, "INCR")
	sequence   = otherRow("PostgreSQL nextval, 1 server", single, system.NamePostgres, "nextval")
	counterRow = otherRow("PostgreSQL counter row, 1 server", single, system.NamePostgres, "counter row")
	numberRow  = otherRow("PostgreSQL counter row with key, 1 server", single, system.NamePostgres, "counter row with key")
	lockedRow  = otherRow("PostgreSQL counter row locked for 10 ms, 1 server", single, system.NamePostgres, "counter row locked for 10 ms")
)

// rows are all, in the order they are shown.
var rows = []row{
	unary, client, stream, unary100, stream100, hiloRange, seriesTake, serverSide, unary1k, stream1k,
	echo, unaryGhz, etcd, etcdGhz, bareRaft, redis, sequence, counterRow, numberRow, lockedRow,
}

// allCallers are the numbers of callers that are shown.
var allCallers = []int{1, 64, 512}

func (w row) series(r result.Results, callers int, value func(bench.Report) float64) result.Series {
	k := w.key
	k.Callers = callers
	return r.Loads(k, value)
}

// rate is ids a second. The empty call gives none, so its calls count.
func rate(b bench.Report) float64 {
	if b.Op == bench.Echo {
		return b.CallsPerS
	}
	return b.IDsPerS
}

func (w row) rate(r result.Results, callers int) result.Series { return w.series(r, callers, rate) }

func (w row) p50(r result.Results, callers int) result.Series {
	return w.series(r, callers, func(b bench.Report) float64 { return float64(b.P50us) })
}

func (w row) p99(r result.Results, callers int) result.Series {
	return w.series(r, callers, func(b bench.Report) float64 { return float64(b.P99us) })
}
