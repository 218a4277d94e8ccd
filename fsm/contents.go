package fsm

import (
	"github.com/idnode/idnode/internal/nodeid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/raftlog"
)

// contents is the replicated state itself, without lock or waiters. Each store in it owns its
// records, keeps their part of the hash, and restores them from a snapshot; code that concerns
// several stores is here. It is not copied: stores point to each other.
type contents struct {
	applied uint64
	// clock is the time of the newest entry applied, 0 after a restart. It is no part of the state.
	clock int64

	// clusterID is nil until the cluster is formed.
	clusterID []byte
	// format is the log format that leaders write.
	format uint32

	databases  databaseStore
	identities identityStore
	hilos      hiloStore
	claims     claimStore
	members    memberStore
	sessions   sessionStore
	etags      etagStore
	requests   requestWindow
	joinTokens joinTokenStore
	series     seriesStore
	pools      poolStore
	settings   settingStore
	// floor is where unknown names begin.
	floor floor
	// roles is nil without roles.
	roles *roleStore
}

func newContents() *contents {
	c := &contents{
		format:     firstFormat,
		databases:  databaseStore{numbers: map[string]uint32{}},
		members:    memberStore{byID: map[nodeid.ID]*raftlogv1.Member{}},
		sessions:   newSessions(),
		etags:      etagStore{byNode: map[nodeid.ID]*nodeEtags{}},
		requests:   newRequestWindow(),
		joinTokens: newJoinTokens(),
		settings:   newSettings(),
	}
	c.databases.limits = &c.settings
	c.identities, c.hilos, c.claims = newIdentities(&c.databases), newHiLos(&c.databases), newClaims(&c.databases)
	c.databases.replaced = func() { clear(c.claims.full) } // They are by number.
	c.series, c.pools = newSeriesStore(&c.databases), newPoolStore(&c.databases)
	return c
}

func (c *contents) formed() bool { return c.clusterID != nil }

// hash is the hash of the whole state. The stores keep the hashes of their many records; the few
// single records are hashed here.
func (c *contents) hash() uint64 {
	h := c.databases.hash + c.identities.shown.hash + c.identities.hidden.hash + c.hilos.counters.hash +
		c.claims.claimed.hash + c.claims.hash + c.members.hash + c.sessions.hash + c.etags.hash + c.requests.hash +
		c.joinTokens.hash + c.series.hash + c.pools.hash + c.settings.hash()
	if c.formed() {
		h.Add(hashCluster(c.clusterID))
	}
	if c.roles != nil {
		h.Add(c.roles.hash)
	}
	h.Add(hashNumber(recordFormat, uint64(c.format), firstFormat))
	h.Add(hashFloor(c.floor))
	h.Add(hashNumber(recordMembership, c.members.index, 0))
	h.Add(hashNumber(recordRequestFloor, c.requests.floor, 0))
	return uint64(h)
}

func (c *contents) apply(index uint64, e *raftlog.Entry) ([]raftlog.GroupResult, error) {
	if err := c.checkEntry(index, e); err != nil {
		return nil, err
	}
	now := moment{index: index, unixNano: e.TimeUnixNano, clusterID: e.ClusterID}
	c.requests.evict(c.settings.requestWindow(), index, requestsAtOnce)
	results := make([]raftlog.GroupResult, len(e.Groups))
	for i := range e.Groups {
		results[i] = c.applyGroup(now, &e.Groups[i])
	}
	c.applied, c.clock = index, e.TimeUnixNano
	c.members.settle(index)
	return results, nil
}
