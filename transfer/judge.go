package transfer

import (
	"context"
	"hash/maphash"
	"maps"
	"strings"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/transfer/counterfile"
)

// judged is the growth that dry runs reported for the counters so far, by database and in total.
type judged struct {
	all        *idnodev1.MergeGrowth
	byDatabase map[string]*idnodev1.MergeGrowth
}

// judge fails if a cluster has no room for all of the counters, which are distinct. It changes nothing.
func judge(ctx context.Context, conn grpc.ClientConnInterface, counters func(counterfile.Each) error) error {
	m := &Merger{Conn: conn, DryRun: true, judged: &judged{&idnodev1.MergeGrowth{}, map[string]*idnodev1.MergeGrowth{}}}
	err := counters(func(c counterfile.Counter) error { return m.add(ctx, c) })
	if err == nil {
		err = m.send(ctx)
	}
	return err
}

// tell adds to a request the growth of the requests before it.
func (j *judged) tell(req *idnodev1.MergeCountersRequest) {
	if j == nil {
		return
	}
	req.Already = j.all
	for _, d := range req.GetDatabases() {
		d.Already = j.byDatabase[d.GetDatabase()]
	}
}

// hear adds the growth of a request.
func (j *judged) hear(req *idnodev1.MergeCountersRequest, res *idnodev1.MergeCountersResponse) {
	for i, g := range res.GetGrowth()[:min(len(res.GetGrowth()), len(req.GetDatabases()))] {
		name := req.GetDatabases()[i].GetDatabase()
		if j.byDatabase[name] == nil {
			j.byDatabase[name] = &idnodev1.MergeGrowth{}
		}
		for _, sum := range []*idnodev1.MergeGrowth{j.all, j.byDatabase[name]} {
			sum.Databases += g.GetDatabases()
			sum.Identities += g.GetIdentities()
			sum.Hilos += g.GetHilos()
			sum.Claims += g.GetClaims()
			sum.Bytes += g.GetBytes()
		}
	}
}

var keySeed = maphash.MakeSeed()

// keyOf is a hash of a counter's database, kind and name. Two counters with the same hash are judged as
// one; the cluster's own check follows.
func keyOf(c counterfile.Counter) uint64 {
	var h maphash.Hash
	h.SetSeed(keySeed)
	name := docid.Fold(c.Name)
	switch c.Kind {
	case counterfile.HiLo, counterfile.Claim:
		maphash.WriteComparable(&h, c.Kind)
	default:
		name = strings.TrimSuffix(name, "|")
	}
	_, _ = h.WriteString(databaseOf(c) + "|" + name) // It has no errors.
	return h.Sum64()
}

// once lists the first counter of each name, except the names in but.
func once(counters []counterfile.Counter, but map[uint64]bool) func(counterfile.Each) error {
	return func(each counterfile.Each) error {
		seen := map[uint64]bool{}
		maps.Copy(seen, but)
		for _, c := range counters {
			key := keyOf(c)
			if seen[key] {
				continue
			}
			seen[key] = true
			if err := each(c); err != nil {
				return err
			}
		}
		return nil
	}
}

// keysIn returns the names of a list that a backup has too.
func (b *Backup) keysIn(counters []counterfile.Counter) (map[uint64]bool, error) {
	listed, both := map[uint64]bool{}, map[uint64]bool{}
	for _, c := range counters {
		listed[keyOf(c)] = true
	}
	if len(listed) == 0 {
		return both, nil
	}
	err := b.Counters(func(c counterfile.Counter) error {
		if key := keyOf(c); listed[key] {
			both[key] = true
		}
		return nil
	})
	return both, err
}
