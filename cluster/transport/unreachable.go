package transport

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// unreachable are the members whose Raft ports were dialled in vain, by Raft name. Probes
// only tell that a member is reached: they have too little time to tell that it is not.
type unreachable struct {
	mu   sync.Mutex
	byID map[string]failedDial
}

// failedDial is the newest failure, and when the first came since the member was reached.
type failedDial struct {
	since time.Time
	err   error
}

func newUnreachable() *unreachable { return &unreachable{byID: map[string]failedDial{}} }

func (u *unreachable) reached(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.byID, id)
}

func (u *unreachable) failed(id string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f, again := u.byID[id]
	if !again {
		f.since = time.Now()
	}
	f.err = err
	u.byID[id] = f
}

// Unreachable returns since when dials to a member's Raft port fail, and why the newest did;
// nil if it succeeded, or there was none.
func (t *Transport) Unreachable(id raft.ServerID) (since time.Time, err error) {
	u := t.stream.unreachable
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.byID[string(id)]
	return f.since, f.err
}
