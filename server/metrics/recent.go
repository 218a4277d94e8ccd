package metrics

import (
	"math"
	"sync"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/idnode/idnode/client/docid"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
)

const (
	// recentWindow is how far back Recent looks, and recentEvery how long its answer is good for.
	recentWindow = 10 * time.Second
	recentEvery  = 500 * time.Millisecond
)

// recent keeps what was counted up to several times, to tell what was counted between them.
type recent struct {
	mu sync.Mutex
	// samples are oldest first: the last before recentWindow began, and those since.
	samples []sample
	figures *peerv1.Figures
}

type sample struct {
	at               time.Time
	identities, ids  uint64
	commits, written *dto.Histogram
}

// Recent returns what the node did in its last seconds, without the space left, as a copy.
func (m *Metrics) Recent() *peerv1.Figures {
	return proto.CloneOf(m.recentAt(time.Now()))
}

func (m *Metrics) recentAt(now time.Time) *peerv1.Figures {
	r := &m.recent
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.samples); n > 0 && now.Sub(r.samples[n-1].at) < recentEvery {
		return r.figures
	}
	r.samples = append(r.samples, m.sampleAt(now))
	for len(r.samples) > 2 && now.Sub(r.samples[1].at) >= recentWindow {
		r.samples = r.samples[1:]
	}
	r.figures = between(r.samples[0], r.samples[len(r.samples)-1])
	return r.figures
}

func (m *Metrics) sampleAt(now time.Time) sample {
	s := sample{at: now, commits: written(m.groupTook).GetHistogram(), written: written(m.logWrite).GetHistogram()}
	for strategy, n := range m.Issued() {
		s.ids += n
		if strategy == strategies[docid.Identity] {
			s.identities = n
		}
	}
	return s
}

func between(from, to sample) *peerv1.Figures {
	f := &peerv1.Figures{CommitP99Micros: p99(from.commits, to.commits), WriteP99Micros: p99(from.written, to.written)}
	if seconds := to.at.Sub(from.at).Seconds(); seconds > 0 {
		f.IdentitiesPerSecond = float64(to.identities-from.identities) / seconds
		f.IdsPerSecond = float64(to.ids-from.ids) / seconds
	}
	return f
}

// p99 returns what 99 of 100 observations between two states of a histogram took at
// most, in microseconds, as Prometheus' histogram_quantile reckons: evenly spread within a bucket, and
// the greatest bound for what lies above. It is 0 if there was none.
func p99(from, to *dto.Histogram) uint64 {
	rank := 0.99 * float64(to.GetSampleCount()-from.GetSampleCount())
	var lower, below float64
	for i, b := range to.GetBucket() {
		upTo := float64(b.GetCumulativeCount() - from.GetBucket()[i].GetCumulativeCount())
		if upTo >= rank && upTo > below {
			lower += (b.GetUpperBound() - lower) * (rank - below) / (upTo - below)
			break
		}
		lower, below = b.GetUpperBound(), upTo
	}
	if rank == 0 {
		return 0
	}
	return uint64(math.Round(lower * 1e6))
}
