package transport

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// unreachable are the members whose Raft ports could not be dialled, by Raft id. A probe only
// shows that a member is reachable: its timeout is too short to show that it is not.
type unreachable struct {
	mu   sync.Mutex
	byID map[string]failedDial
}

// failedDial is the newest failure, and when the first since the last success was.
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

// Unreachable returns since when dials to a member's Raft port fail, and the newest error;
// nil if the newest dial succeeded, or there was none.
func (t *Transport) Unreachable(id raft.ServerID) (since time.Time, err error) {
	u := t.stream.unreachable
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.byID[string(id)]
	return f.since, f.err
}
