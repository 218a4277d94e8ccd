package transfer

import (
	"cmp"
	"context"
	"math"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/transfer/counterfile"
)

// Bounds of one request, below those of a server. The bytes are those of names and databases.
const (
	mergeNames = 1000
	mergeBytes = 32_000
)

// Merger merges counters into a cluster, in batches of which each may span databases. Values only
// rise. It is used by one goroutine.
type Merger struct {
	// Conn retries each call until it is answered, so that long work continues through elections.
	Conn grpc.ClientConnInterface
	// DryRun changes nothing, and Changed gets each change that would be made.
	DryRun  bool
	Changed func(*idnodev1.CounterChange)
	// Merged, if set, is called after each batch with the number of names merged.
	Merged func(names int64)

	// skip is added to every value.
	skip int64

	batch *idnodev1.MergeCountersRequest
	// places are those of the batch's databases in it.
	places map[string]int
	names  int
	bytes  int
	sent   int64
	// total is the sum of all batches' results.
	total idnodev1.MergeCountersResponse
	// judged, if set, is the growth of the batches so far.
	judged *judged
}

// Merge merges a list of counters, or nothing if the cluster has no room for all. It returns the Merger's results so
// far.
func (m *Merger) Merge(ctx context.Context, counters []counterfile.Counter) (*idnodev1.MergeCountersResponse, error) {
	if err := judge(ctx, m.Conn, once(counters, nil)); err != nil {
		return &m.total, err
	}
	return m.mergeList(ctx, counters)
}

func (m *Merger) mergeList(ctx context.Context, counters []counterfile.Counter) (*idnodev1.MergeCountersResponse, error) {
	err := m.merge(ctx, func(each counterfile.Each) error {
		for _, c := range counters {
			if err := each(c); err != nil {
				return err
			}
		}
		return nil
	})
	return &m.total, err
}

// merge merges the given counters, claims first: an identity that is raised over a claim has not
// issued it.
func (m *Merger) merge(ctx context.Context, counters func(counterfile.Each) error) error {
	for _, claims := range []bool{true, false} {
		err := counters(func(c counterfile.Counter) error {
			if claims != (c.Kind == counterfile.Claim) {
				return nil
			}
			return m.add(ctx, c)
		})
		if err == nil {
			err = m.send(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// databaseOf returns the folded database of a counter.
func databaseOf(c counterfile.Counter) string {
	return cmp.Or(docid.Fold(c.Database), docid.DefaultDatabase)
}

// add adds one counter; it may send the batch before it.
func (m *Merger) add(ctx context.Context, c counterfile.Counter) error {
	database, bytes := databaseOf(c), len(docid.Fold(c.Name)) // As the server counts them: folding may lengthen a name.
	place, known := m.places[database]
	if !known {
		bytes += len(database)
	}
	if m.names >= mergeNames || m.bytes+bytes > mergeBytes {
		if err := m.send(ctx); err != nil {
			return err
		}
		if known {
			known, bytes = false, bytes+len(database)
		}
	}
	if m.batch == nil {
		m.batch, m.places = &idnodev1.MergeCountersRequest{DryRun: m.DryRun}, map[string]int{}
	}
	if !known {
		place = len(m.batch.GetDatabases())
		m.places[database] = place
		m.batch.Databases = append(m.batch.Databases, &idnodev1.DatabaseMerge{Database: database})
	}
	m.names, m.bytes = m.names+1, m.bytes+bytes
	m.put(m.batch.GetDatabases()[place], c)
	return nil
}

func (m *Merger) put(to *idnodev1.DatabaseMerge, c counterfile.Counter) {
	switch c.Kind {
	case counterfile.Claim:
		to.Claims = append(to.Claims, c.Name)
	case counterfile.HiLo:
		to.Hilos = append(to.Hilos, &idnodev1.HiLoValue{
			Tag: c.Name, Max: plus(c.Value, m.skip), Peak: plus(max(c.Peak, c.Value), m.skip),
		})
	default:
		to.Identities = append(to.Identities, &idnodev1.IdentityValue{
			Name: c.Name, Value: plus(c.Value, m.skip), Deleted: c.Kind == counterfile.DeletedIdentity,
		})
	}
}

// plus adds a non-negative number, and saturates at the greatest one.
func plus(value, add int64) int64 {
	if value > math.MaxInt64-add {
		return math.MaxInt64
	}
	return value + add
}

func (m *Merger) send(ctx context.Context) error {
	if m.batch == nil {
		return nil
	}
	batch := m.batch
	m.judged.tell(batch)
	res, err := idnodev1.NewAdminServiceClient(m.Conn).MergeCounters(ctx, batch)
	if err != nil {
		return err
	}
	m.sent += int64(m.names)
	m.batch, m.places, m.names, m.bytes = nil, nil, 0, 0
	if m.judged != nil {
		m.judged.hear(batch, res)
		return nil
	}
	t := &m.total
	t.Created += res.GetCreated()
	t.Raised += res.GetRaised()
	t.Claimed += res.GetClaimed()
	t.Unchanged += res.GetUnchanged()
	t.Conflicts = append(t.Conflicts, res.GetConflicts()...)
	t.LogIndex = max(t.LogIndex, res.GetLogIndex())
	if m.Changed != nil {
		for _, c := range res.GetChanges() {
			m.Changed(c)
		}
	}
	if m.Merged != nil {
		m.Merged(m.sent)
	}
	return nil
}
