package etag

import (
	"errors"
	"fmt"
	"time"
)

func (c *Counters) enqueue(ctr *counter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.enqueueLocked(ctr)
	}
}

func (c *Counters) enqueueLocked(ctr *counter) {
	if ctr.queued.Load() {
		return
	}
	ctr.queued.Store(true)
	c.queue = append(c.queue, ctr)
	signal(c.wake)
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// reserveLoop is the only goroutine that writes to the store. All counters that wait at
// the same time share one durable write.
func (c *Counters) reserveLoop() {
	defer close(c.done)
	for range c.wake {
		if r, batch := c.nextReservation(); r != nil {
			err := c.store.Reserve(*r)
			c.finish(r, batch, err)
		}
		if c.isClosing() {
			c.closeErr = c.stop()
			return
		}
	}
}

// nextReservation empties the queue. It returns nil if there is nothing to write, or if
// writes have ended.
func (c *Counters) nextReservation() (*Reservation, []*counter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || (len(c.queue) == 0 && c.wantStart == c.start) {
		return nil, nil
	}
	r := &Reservation{Limits: make(map[string]uint64, len(c.queue))}
	if c.wantStart > c.start {
		r.Start = c.wantStart
	}
	batch := c.queue
	c.queue = nil
	for _, ctr := range batch {
		r.Limits[ctr.name] = ctr.target(c.cfg.BlockSize)
	}
	return r, batch
}

// finish publishes a reservation, or seals all counters if err is not nil.
func (c *Counters) finish(r *Reservation, batch []*counter, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.breakLocked(err)
		return
	}
	c.start = max(c.start, r.Start)
	if c.startMoved != nil {
		close(c.startMoved)
		c.startMoved = nil
	}
	for _, ctr := range batch {
		ctr.reserved(r.Limits[ctr.name])
		if len(ctr.waiters) > 0 {
			c.enqueueLocked(ctr)
		}
	}
	signal(c.reserved)
}

func (c *Counters) breakLocked(cause error) {
	c.cfg.Logger.Error("no more etags: a durable write failed", "error", cause)
	broken := fmt.Errorf("%w: %w", ErrBroken, cause)
	if c.err == nil {
		c.sealLocked(broken)
	}
	c.err = broken
	close(c.broken)
}

// sealLocked seals every counter: no etag is handed out afterwards.
func (c *Counters) sealLocked(err error) {
	c.err = err
	for _, ctr := range *c.counters.Load() {
		ctr.seal(err)
	}
	if c.startMoved != nil {
		close(c.startMoved)
		c.startMoved = nil
	}
}

// Started records the cluster's number of this start, so that the next start can detect a
// data directory that was set back. When it returns nil, the number is durable, and so is
// every Raise that returned before. A number that is not above the recorded number changes
// nothing. The errors are ErrStalled, ErrClosed and ErrBroken.
func (c *Counters) Started(start uint64) error {
	timer := time.NewTimer(c.cfg.MaxWait)
	defer timer.Stop()
	for {
		moved, err := c.askStart(start)
		if moved == nil || err != nil {
			return err
		}
		select {
		case <-moved:
		case <-timer.C:
			return ErrStalled
		}
	}
}

// askStart returns a channel that is closed when the caller should look again, or nil if
// start is recorded.
func (c *Counters) askStart(start uint64) (<-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	if start <= c.start {
		return nil, nil
	}
	c.wantStart = max(c.wantStart, start)
	if c.startMoved == nil {
		c.startMoved = make(chan struct{})
	}
	signal(c.wake)
	return c.startMoved, nil
}

// Close seals the counters, writes the exact last values with the mark of a clean stop, and
// closes the store. Calls that wait get ErrClosed. It may be called again, and from several
// goroutines: each call returns the same error. It returns ErrStalled after CloseWait if the
// disk does not answer; the store then stays open until it does. After ErrBroken it writes
// nothing.
func (c *Counters) Close() error {
	c.beginClose()
	timer := time.NewTimer(c.cfg.CloseWait)
	defer timer.Stop()
	select {
	case <-c.done:
		return c.closeErr
	case <-timer.C:
		return ErrStalled
	}
}

func (c *Counters) beginClose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return
	}
	c.closing = true
	if c.err == nil {
		c.sealLocked(ErrClosed)
	}
	signal(c.wake)
}

func (c *Counters) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

func (c *Counters) stop() error {
	err := c.writeStop()
	if closeErr := c.store.Close(); err == nil && closeErr != nil {
		err = fmt.Errorf("etag: close the store: %w", closeErr)
	}
	return err
}

// writeStop writes the last etags used of all databases that may be on disk, including
// databases with a reservation and no used etag. All counters are sealed.
func (c *Counters) writeStop() error {
	last := make(map[string]uint64)
	c.mu.Lock()
	broken := c.err
	for database, ctr := range *c.counters.Load() {
		if ctr.end() > 0 {
			last[database] = ctr.used()
		}
	}
	c.mu.Unlock()
	if errors.Is(broken, ErrBroken) {
		return broken
	}
	err := c.store.Stop(last)
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.breakLocked(err)
	return c.err
}
