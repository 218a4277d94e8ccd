package httpapi

import (
	"fmt"
	"strings"
	"sync"

	"github.com/idnode/idnode/server/service"
)

// topologyEtag tells the etag of the topology. It is safe for concurrent use.
//
// Clients keep the topology with the higher etag, from any node. So it is
// the log index of the last change of the members, which the state has from log format 3
// on. Below, it is the index at which this node saw the change: a topology with a higher
// one is at least as new, on all nodes alike. A node that starts again has seen nothing
// yet, so its clients ask once more than needed.
type topologyEtag struct {
	mu   sync.Mutex
	seen string
	etag int64
}

// of returns the etag of the topology in a status, at least 1.
func (t *topologyEtag) of(status service.Status) int64 {
	if status.MembershipIndex != 0 {
		return int64(status.MembershipIndex)
	}
	var b strings.Builder
	for _, m := range status.Members {
		fmt.Fprintf(&b, "%q %q %t %t;", m.Tag, m.HTTPAddress, m.Votes, m.Role == service.RoleWatcher)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := b.String(); now != t.seen || t.etag == 0 {
		t.seen, t.etag = now, max(1, t.etag+1, int64(status.StateIndex))
	}
	return t.etag
}
