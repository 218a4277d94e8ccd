package metrics

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/server/service"
)

const (
	// MaxDatabases is how many databases have a label of their own: the first that
	// are used since the node was started. All others share OtherDatabases.
	MaxDatabases = 64
	// OtherDatabases is the label of the databases beyond that. A database of this
	// name shares it from the start.
	OtherDatabases = "other"
)

// strategies are the labels of the ways to get an id. The kinds of templates come first: a new one
// moves those behind Semantic.
var strategies = [...]string{
	docid.GUID: "guid", docid.ServerSide: "server_side", docid.Identity: "identity", docid.Semantic: "semantic",
	strategyHiLo: "hilo", strategySeries: "series",
}

const strategyHiLo, strategySeries = docid.Semantic + 1, docid.Semantic + 2

type databases struct {
	issued, ranges, reserved, returns, returned, hits *prometheus.CounterVec

	// known maps the folded name to *database; full says that no further name gets
	// into it, so that the names callers make up cannot make it grow.
	known sync.Map
	mu    sync.Mutex
	count int
	full  atomic.Bool
	other *database
}

// database are the counters of one label, found once: finding them by their
// labels would cost each call more than counting does.
type database struct {
	label string
	// issued are the ids by strategy.
	issued                                    [len(strategies)]prometheus.Counter
	ranges, reserved, returns, returned, hits prometheus.Counter
}

func (m *Metrics) newDatabases() *databases {
	d := &databases{
		issued: m.counterVec("ids_issued_total", "Ids that this node handed out, by strategy; of HiLo, the numbers of its ranges, "+
			"and of series document numbers. "+
			"A call answered again because of its request id counts again.", databaseLabel, "strategy"),
		ranges: m.counterVec("hilo_ranges_total", "HiLo ranges that this node handed out.", databaseLabel),
		reserved: m.counterVec("hilo_ranges_from_reserve_total",
			"HiLo ranges that this node handed out of its reserve, while the cluster was out of reach.", databaseLabel),
		returns:  m.counterVec("hilo_ranges_returned_total", "HiLo ranges whose unused rest was taken back through this node.", databaseLabel),
		returned: m.counterVec("hilo_numbers_returned_total", "Numbers of HiLo ranges that were taken back through this node.", databaseLabel),
		hits: m.counterVec("request_id_hits_total", "Calls answered again because their request id is remembered. "+
			"Every node counts those of the whole cluster.", databaseLabel),
	}
	d.other = d.make(OtherDatabases)
	d.known.Store(OtherDatabases, d.other)
	return d
}

func (d *databases) make(label string) *database {
	made := &database{
		label: label, ranges: d.ranges.WithLabelValues(label), reserved: d.reserved.WithLabelValues(label),
		returns: d.returns.WithLabelValues(label), returned: d.returned.WithLabelValues(label), hits: d.hits.WithLabelValues(label),
	}
	for i, strategy := range strategies {
		made.issued[i] = d.issued.WithLabelValues(label, strategy)
	}
	return made
}

func (d *databases) of(name string) *database {
	if found, ok := d.known.Load(name); ok {
		return found.(*database)
	}
	if d.full.Load() {
		return d.other
	}
	return d.add(name)
}

func (d *databases) add(name string) *database {
	d.mu.Lock()
	defer d.mu.Unlock()
	if found, ok := d.known.Load(name); ok {
		return found.(*database)
	}
	if d.count == MaxDatabases {
		d.full.Store(true)
		return d.other
	}
	d.count++
	added := d.make(name)
	d.known.Store(name, added)
	return added
}

// Service returns what the service is to tell.
func (m *Metrics) Service() service.Events {
	return service.Events{
		Issued: func(database string, kind docid.Kind, n int64) { m.databases.of(database).issued[kind].Add(float64(n)) },
		RangeIssued: func(database string, numbers int64) {
			d := m.databases.of(database)
			d.ranges.Inc()
			d.issued[strategyHiLo].Add(float64(numbers))
		},
		NumbersTaken:     func(database string, n int64) { m.databases.of(database).issued[strategySeries].Add(float64(n)) },
		RangeFromReserve: func(database string) { m.databases.of(database).reserved.Inc() },
		RangeReturned: func(database string, numbers int64) {
			d := m.databases.of(database)
			d.returns.Inc()
			d.returned.Add(float64(max(0, numbers)))
		},
		BackedUp: m.backedUp.SetToCurrentTime, Used: func(_, _, _ string, _ int64) {},
		Refused: func(reason string) { m.Refused(reason, 1) },
	}
}

// Issued returns how many ids this node has handed out since it was started, in
// all databases, by strategy; of HiLo, the numbers of its ranges.
func (m *Metrics) Issued() map[string]uint64 {
	total := map[string]uint64{}
	m.databases.known.Range(func(_, value any) bool {
		for i, c := range value.(*database).issued {
			total[strategies[i]] += read(c)
		}
		return true
	})
	return total
}

func read(c prometheus.Counter) uint64 { return uint64(written(c).GetCounter().GetValue()) }

func written(metric prometheus.Metric) *dto.Metric {
	var m dto.Metric
	_ = metric.Write(&m) // A metric on its own has no labels that could be wrong.
	return &m
}

// Refused counts calls that ended with an error, by its reason.
func (m *Metrics) Refused(reason string, calls int) {
	m.refused.WithLabelValues(reason).Add(float64(calls))
}

// ConnectionRefused counts a connection that was refused, by the reason.
func (m *Metrics) ConnectionRefused(reason string) {
	m.connectionsRefused.WithLabelValues(reason).Inc()
}

// AnsweredAgain counts a call whose request id is remembered.
func (m *Metrics) AnsweredAgain(database string) { m.databases.of(database).hits.Inc() }
