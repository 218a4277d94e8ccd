package metrics

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// databaseLabel is the one label whose values callers make up.
const databaseLabel = "database"

// hidden is the label of all databases whose names are not shown.
const hidden = "hidden"

// nameless gathers what another gatherer does, without names of databases. Counters are
// summed into one series, which is the same on all nodes and after a restart. Gauges are
// of this node's own etags, of which a sum says nothing: they stay, each with a
// pseudonym, so that alarms hold. It is another one in each process, since nodes share no
// secret that it could be made with, and without one names could be guessed.
func nameless(named prometheus.Gatherer) prometheus.Gatherer {
	salt := rand.Text()
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := named.Gather()
		for _, family := range families {
			sums := map[string]*dto.Metric{}
			family.Metric = slices.DeleteFunc(family.Metric, func(m *dto.Metric) bool {
				i := slices.IndexFunc(m.Label, func(l *dto.LabelPair) bool { return l.GetName() == databaseLabel })
				if i < 0 || m.Label[i].GetValue() == OtherDatabases {
					return false
				}
				value := hidden
				if m.Counter == nil {
					sum := sha256.Sum256([]byte(salt + m.Label[i].GetValue()))
					value += "-" + hex.EncodeToString(sum[:8])
				}
				m.Label = slices.Clone(m.Label) // The registry keeps its own.
				m.Label[i] = &dto.LabelPair{Name: m.Label[i].Name, Value: &value}
				if m.Counter == nil {
					return false
				}
				var key strings.Builder
				for _, l := range m.Label {
					key.WriteString(l.GetValue() + "\xff")
				}
				sum, added := sums[key.String()]
				if !added {
					sums[key.String()] = m
					return false
				}
				total := sum.Counter.GetValue() + m.Counter.GetValue()
				sum.Counter = &dto.Counter{Value: &total}
				return true
			})
		}
		return families, err
	})
}
