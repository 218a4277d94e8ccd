package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/idnode/idnode/raftlog"
)

// Defaults of Config.
const (
	DefaultMaxOperations = 512
	DefaultMaxGroupBytes = 64 << 10
	DefaultQueueLength   = 16384
	DefaultQueueBytes    = 16 << 20
	DefaultLeaderWait    = 2 * time.Second
	DefaultSendTimeout   = 5 * time.Second
	DefaultGiveUp        = 10 * time.Second
	// MaxInFlight is the most groups, and the most entries, that may be under
	// way at a time.
	MaxInFlight = 4
)

// Route tells which node leads. Ids are Raft server ids. It is safe for
// concurrent use.
type Route interface {
	// Leader returns the leader this node knows of; ok is false if it knows
	// none. It is a hint: the node may not lead any more.
	Leader() (id string, ok bool)
	// Changed returns a channel that is closed at the next change of what
	// Leader returns. Taken before Leader is called, no change is missed.
	Changed() <-chan struct{}
}

// Sender brings an encoded group to a leader: to this node's own Batcher, or
// over the stream to another node. It is safe for concurrent use.
type Sender interface {
	// Send returns what the leader's state machine said, or an *outcome.Error.
	// NotApplied promises that the group is in no log and never will be, as far
	// as this sending goes; any other error counts as Unknown. It returns soon
	// after ctx ended. The group is not changed by anyone, and may be kept.
	Send(ctx context.Context, leader string, group []byte) (raftlog.GroupResult, error)
}

// SessionOpener opens sessions.
type SessionOpener interface {
	// Open brings an announcement of this node through the log and returns the
	// session it opened, which is the log index of the announcement, and the
	// origin that groups carry, which is this node's Raft id. It returns soon
	// after ctx ended. The Gatherer never calls it twice at a time.
	Open(ctx context.Context) (session uint64, origin []byte, err error)
}

// Events are told what a Gatherer does, for metrics. A nil function is not
// called. They are called on the Gatherer's own goroutines and must be quick.
type Events struct {
	// Cut is called for each group that is about to be sent for the first time:
	// its oldest operation has waited at least that long to be in one.
	Cut func(operations int, waited time.Duration)
	// Answered is called for each group that got its results.
	Answered func(operations, bytes, attempts int, took time.Duration)
	// GivenUp is called for operations whose callers got an error other than
	// that their own context ended.
	GivenUp func(operations int, err error)
	// SessionOpened is called when a session was opened.
	SessionOpened func(session uint64)
	// StartSpan starts the span of each group, from its cut until it is settled.
	StartSpan StartSpan
}

// Config is what a Gatherer needs. Zero values get defaults.
type Config struct {
	Route  Route
	Sender Sender
	Opener SessionOpener
	Logger *slog.Logger
	Events Events
	// InFlight is how many groups are under way at a time: 1 (default) to 4.
	InFlight int
	// MaxOperations and MaxGroupBytes cut a group; the bytes are those of the
	// operations and 4 for each, without the group's head of up to 100 bytes.
	// An operation that does not fit alone is refused as TooLarge. The Batcher
	// must take groups of that size: see BatcherConfig.MaxEntryBytes.
	MaxOperations int
	MaxGroupBytes int
	// QueueLength and QueueBytes bound the operations that wait.
	QueueLength int
	QueueBytes  int
	// Linger is how long at most, after a group of at least LingerMin operations
	// was answered, the next group waits for as many operations again and those that
	// came meanwhile, because the callers just answered are about to come back. It
	// never waits longer than a few times what the group took, nor for more than
	// makes a round cheap. 0 (default): not at all.
	Linger time.Duration
	// LingerMin is the smallest group worth waiting after; default a quarter
	// of MaxOperations.
	LingerMin int
	// LeaderWait is how long operations wait without a leader that a quorum
	// follows, measured from its loss. It must be longer than an election.
	LeaderWait time.Duration
	// SendTimeout bounds one attempt to send a group; an attempt gets between
	// one and two times as long. It should exceed the Batcher's AnswerTimeout,
	// so that the leader's own word comes first.
	SendTimeout time.Duration
	// CallLimit is how long an operation waits at most, and up to an eighth more,
	// whatever its caller's context says: NotApplied(Deadline) if it is in no
	// group, Unknown(Deadline) otherwise. 0 (default): no limit.
	CallLimit time.Duration
	// GiveUp is how long one group is sent again while there is a leader and a
	// quorum but no answer; the attempt under way then is the last. At least
	// SendTimeout.
	GiveUp time.Duration
}

// withDefaults returns c with defaults filled in, or an error that names what
// is missing or contradictory.
func (c Config) withDefaults() (Config, error) {
	if c.Route == nil || c.Sender == nil || c.Opener == nil {
		return c, errors.New("commit: Route, Sender and Opener are required")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.InFlight = cmp.Or(c.InFlight, 1)
	c.MaxOperations = cmp.Or(c.MaxOperations, DefaultMaxOperations)
	c.MaxGroupBytes = cmp.Or(c.MaxGroupBytes, DefaultMaxGroupBytes)
	c.QueueLength = cmp.Or(c.QueueLength, DefaultQueueLength)
	c.QueueBytes = cmp.Or(c.QueueBytes, DefaultQueueBytes)
	c.LingerMin = cmp.Or(c.LingerMin, max(2, c.MaxOperations/4))
	c.LeaderWait = cmp.Or(c.LeaderWait, DefaultLeaderWait)
	c.SendTimeout = cmp.Or(c.SendTimeout, DefaultSendTimeout)
	c.GiveUp = cmp.Or(c.GiveUp, max(DefaultGiveUp, c.SendTimeout))
	return c, c.validate()
}

func (c Config) validate() error {
	switch {
	case c.InFlight < 1 || c.InFlight > MaxInFlight:
		return fmt.Errorf("commit: InFlight is %d, must be 1 to %d", c.InFlight, MaxInFlight)
	case c.MaxOperations < 1 || c.MaxGroupBytes < 1 || c.LingerMin < 1:
		return errors.New("commit: MaxOperations, MaxGroupBytes and LingerMin must be positive")
	case c.MaxOperations > raftlog.MaxOperations:
		return fmt.Errorf("commit: MaxOperations is %d, must be at most %d", c.MaxOperations, raftlog.MaxOperations)
	case c.QueueLength < 1 || c.QueueBytes < c.MaxGroupBytes:
		return errors.New("commit: the queue must have room for a whole group")
	case c.Linger < 0 || c.LeaderWait < 0 || c.SendTimeout < 0 || c.CallLimit < 0:
		return errors.New("commit: times must not be negative")
	case c.GiveUp < c.SendTimeout:
		return fmt.Errorf("commit: GiveUp (%v) must not be shorter than SendTimeout (%v)", c.GiveUp, c.SendTimeout)
	}
	return nil
}
