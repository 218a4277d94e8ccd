// Package budget bounds what a node holds for its callers, and what they make it do: bytes
// and calls, for all of them and for each, and the connections of each. It knows neither
// what is held nor why.
package budget

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Limits are the bounds of a Budget.
type Limits struct {
	// Bytes is what is held for all callers. Each has half of what the others leave, so
	// that no few of them take all there is.
	Bytes int64
	// Connections is how many one caller has open.
	Connections int
	// Calls is how many are in flight for all callers. Each has three quarters of what the
	// others leave; 0 does not bound them. A caller wastes as many frames at once, and a
	// wasteRate-th of them a second.
	Calls int
}

const (
	// overdraft is the part of a caller's share by which bytes that cannot be refused may
	// exceed it, before the caller is full; least is the part of the bound for all by which
	// they may in any case, so that calls can begin where others hold everything, or the
	// caller itself.
	overdraft = 8
	least     = 512
	// stallTime is how long a caller may take none of its pending answers, and idle is
	// the part of its share up to which that harms no other caller.
	stallTime = 30 * time.Second
	idle      = 4
	// wasteRate leaves room for callers that give up all their calls every few seconds, and
	// keeps the processor that resets take to some percent. A caller that wastes more gets no
	// connection for barTime: else it would dial again at once.
	wasteRate = 4
	barTime   = 2 * time.Second
)

// Budget counts what is held. It is safe for concurrent use.
type Budget struct {
	limits Limits
	held   atomic.Int64
	calls  atomic.Int64

	mu sync.Mutex
	// callers have connections, or had: see gone.
	callers map[string]*caller
	// left are those that have none.
	left map[string]*caller
}

type caller struct {
	name  string
	held  atomic.Int64
	calls atomic.Int64
	waste *rate.Limiter
	// connections and barred, until when the caller gets none, are guarded by Budget.mu.
	connections int
	barred      time.Time
}

// New returns a Budget that nothing is taken of.
func New(limits Limits) *Budget {
	return &Budget{limits: limits, callers: map[string]*caller{}, left: map[string]*caller{}}
}

// Held is how many bytes are held for all callers.
func (b *Budget) Held() int64 { return b.held.Load() }

// Connection is what is held for one connection of a caller. A nil Connection counts
// nothing and refuses nothing. It is safe for concurrent use.
type Connection struct {
	budget *Budget
	caller *caller

	mu sync.Mutex
	// unsent are the bytes of messages that the transport has.
	unsent int64
	// sent counts the messages that it got rid of. At the last look it was seen, which
	// is so since then.
	sent, seen uint64
	since      time.Time
	closed     bool
}

// ErrTooMany is what a caller hears whose connection is not counted.
var ErrTooMany = errors.New("this caller has as many connections to the node as one may, or has sent too many frames that carry nothing")

// Open counts one more connection of a caller; nil says that it has as many as it may, or has wasted
// too many frames. It is closed by Close.
func (b *Budget) Open(name string) *Connection {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.callers[name]
	if c == nil {
		b.forget()
		c = &caller{name: name, waste: rate.NewLimiter(rate.Limit(b.limits.Calls)/wasteRate, b.limits.Calls)}
		if b.limits.Calls == 0 {
			c.waste.SetLimit(rate.Inf)
		}
		b.callers[name] = c
	}
	if c.connections >= b.limits.Connections || time.Now().Before(c.barred) {
		return nil
	}
	c.connections++
	delete(b.left, name)
	return &Connection{budget: b, caller: c}
}

// Close ends a connection, once or more often. What the transport has not sent is
// given back: it forgets most of that without a word.
func (c *Connection) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	closed := c.closed
	c.closed = true
	c.give(c.unsent)
	c.unsent = 0
	c.mu.Unlock()
	if closed {
		return
	}
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	if c.caller.connections--; c.caller.connections == 0 {
		c.budget.left[c.caller.name] = c.caller
	}
	c.budget.forget()
}

// forget forgets callers of whom nothing is left. b.mu is held.
func (b *Budget) forget() {
	for name, c := range b.left {
		if c.gone() {
			delete(b.left, name)
			delete(b.callers, name)
		}
	}
}

// gone says that nothing is left of a caller without connections: a new one must not make it
// forget the calls that go on, nor what was wasted of late.
func (c *caller) gone() bool {
	return c.calls.Load() == 0 && !time.Now().Before(c.barred) && (c.waste.Limit() == rate.Inf || c.waste.Tokens() >= float64(c.waste.Burst()))
}

// Begin counts one more call in flight, unless the caller has three quarters of what the
// others leave; of its calls, one always begins. One that makes the calls of a whole program
// needs many, so it leaves less than of the bytes. A call is ended by End, also when the
// connection is closed meanwhile: what was begun goes on.
func (c *Connection) Begin() bool {
	if c == nil {
		return true
	}
	mine, all := c.caller.calls.Add(1), c.budget.calls.Add(1)
	most := int64(c.budget.limits.Calls)
	if most > 0 && mine > max(1, 3*(most-(all-mine))/4) {
		c.End()
		return false
	}
	return true
}

// End ends a call that Begin counted.
func (c *Connection) End() {
	if c == nil {
		return
	}
	c.caller.calls.Add(-1)
	c.budget.calls.Add(-1)
}

// Wasted counts frames by which the caller takes a call back, or that carry nothing. What such a call
// began goes on for a while. false says that there are more than anybody sends who means them: the
// caller gets no new connection for barTime.
func (c *Connection) Wasted(now time.Time, frames int) bool {
	if c == nil || frames == 0 || c.caller.waste.AllowN(now, frames) {
		return true
	}
	c.budget.mu.Lock()
	defer c.budget.mu.Unlock()
	c.caller.barred = now.Add(barTime)
	return false
}

// Hold takes bytes, if the caller's share is not exceeded by that. They are given back
// by Give.
func (c *Connection) Hold(bytes int64) bool {
	if c == nil {
		return true
	}
	if c.hold(bytes); c.caller.held.Load() > c.share() {
		c.give(bytes)
		return false
	}
	return true
}

// HoldLast takes bytes for a caller that is not full, such as one that holds nothing,
// no matter what others hold. They are given back by Give.
func (c *Connection) HoldLast(bytes int64) bool {
	if c.Full() {
		return false
	}
	if c != nil {
		c.hold(bytes)
	}
	return true
}

func (c *Connection) hold(bytes int64) {
	c.caller.held.Add(bytes)
	c.budget.held.Add(bytes)
}

// share is what the caller may hold, with what it holds already.
func (c *Connection) share() int64 {
	others := c.budget.held.Load() - c.caller.held.Load()
	return max(0, c.budget.limits.Bytes-others) / 2
}

// Give gives back what was taken.
func (c *Connection) Give(bytes int64) {
	if c != nil {
		c.give(bytes)
	}
}

func (c *Connection) give(bytes int64) { c.hold(-bytes) }

// Unsent counts bytes that are there already: the transport has them, of a message that
// is to go or of one that has not come as a whole. They are given back by Sent, or by
// Close.
func (c *Connection) Unsent(bytes int64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.unsent += bytes
		c.hold(bytes)
	}
}

// Sent says that the transport is rid of a message.
func (c *Connection) Sent(bytes int64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.unsent -= bytes
		c.sent++
		c.give(bytes)
	}
}

// Full says that so much is held for the caller that not even what cannot be refused has
// room.
func (c *Connection) Full() bool {
	if c == nil {
		return false
	}
	share := c.share()
	return c.caller.held.Load() > share+max(share/overdraft, c.budget.limits.Bytes/least)
}

// Flooded says that there is no room for a connection's incomplete messages. A full caller
// can still begin calls, which are refused.
func (c *Connection) Flooded(unfinished int64) bool {
	return c.Full() && unfinished > c.budget.limits.Bytes/least
}

// Stalled says that the transport has got rid of nothing for half a minute, while much
// is held for the caller. It is asked again and again, by one goroutine.
func (c *Connection) Stalled(now time.Time) bool {
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unsent == 0 || c.sent != c.seen || c.since.IsZero() || c.caller.held.Load() <= c.share()/idle {
		c.seen, c.since = c.sent, now
		return false
	}
	return now.Sub(c.since) >= stallTime
}
