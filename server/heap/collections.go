package heap

import (
	"runtime"
	"sync"
)

// collections calls a function after each collection.
type collections struct {
	adjust func()

	mu    sync.Mutex
	ended bool
}

// afterCollections calls adjust now and after each collection, one call at a time, until stop
// is called. No call runs when stop has returned.
func afterCollections(adjust func()) (stop func()) {
	c := &collections{adjust: adjust}
	c.run()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ended = true
	}
}

// run calls adjust, and runs again after the next collection.
func (c *collections) run() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.adjust()
	type garbage struct{ *collections }
	runtime.AddCleanup(&garbage{c}, (*collections).run, c)
}
