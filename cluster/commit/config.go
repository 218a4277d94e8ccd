package commit

import (
	"cmp"
	"context"
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
)

// Sender sends an encoded group to a leader: to this node's own Batcher, or over the
// stream to another node. It is safe for concurrent use.
type Sender interface {
	// Send returns the result of the leader's state machine, or an *outcome.Error.
	// NotApplied promises that this attempt put the group in no log and never will; any
	// other error counts as Unknown. Send returns soon after ctx ends. The group is never
	// changed later, so the Sender may keep it.
	Send(ctx context.Context, leader string, group []byte) (raftlog.GroupResult, error)
}

// SessionOpener opens sessions.
type SessionOpener interface {
	// Open commits an announcement of this node. It returns the session, which is the
	// announcement's log index, and the origin of its groups, which is this node's Raft
	// id. It returns soon after ctx ends. The Gatherer never calls it concurrently.
	Open(ctx context.Context) (session uint64, origin []byte, err error)
}

// Events are callbacks for metrics. They run on the Gatherer's goroutines and must be quick.
type Events struct {
	// Cut is called for each group before its first attempt. waited is a lower bound of
	// how long its oldest operation has waited.
	Cut func(operations int, waited time.Duration)
	// Answered is called for each group that got its results; took is the time since its cut.
	Answered func(operations, bytes, attempts int, took time.Duration)
	// GivenUp is called for operations that fail for another reason than the end of the
	// caller's own context.
	GivenUp func(operations int, err error)
	// StartSpan, if set, starts the span of each group, from its cut until it is settled.
	StartSpan StartSpan
}

// Config is what a Gatherer needs: Sender, Opener, Logger, Events and ResultBound. Zero values
// of the others get defaults.
type Config struct {
	Sender Sender
	Opener SessionOpener
	Logger *slog.Logger
	Events Events
	// MaxOperations and MaxGroupBytes bound a group; the bytes are the operations' and 4
	// for each, without the group's head of up to 100 bytes. An operation that exceeds the
	// bound alone is refused as TooLarge. The Batcher must accept groups of that size: see
	// BatcherConfig.MaxEntryBytes.
	MaxOperations int
	MaxGroupBytes int
	// ResultBound returns an upper bound of an operation's result in bytes, and
	// MaxResultBytes bounds the sum over a group, so that its answer can be sent; a group of
	// one operation is always sent.
	ResultBound    func(operation []byte) int
	MaxResultBytes int
	// QueueLength and QueueBytes bound the queued operations.
	QueueLength int
	QueueBytes  int
	// Linger bounds how long the next group waits, after a group was answered, for the same
	// number of operations plus those that arrived in between, because the answered callers
	// are about to propose again. The wait is at most a few rounds long, and ends at the
	// number of operations that makes a round cheap. 0 (default) disables the wait.
	Linger time.Duration
	// LingerMin is the number of operations from which the whole wait is worth it; below
	// it the wait is a part of a round. Default: a quarter of MaxOperations.
	LingerMin int
	// LeaderWait bounds how long operations wait without a leader that a quorum follows,
	// measured from its loss. It must be longer than an election.
	LeaderWait time.Duration
	// SendTimeout bounds one attempt to send a group; an attempt gets between one and two
	// times as long. It should exceed the Batcher's AnswerTimeout, so that the leader's
	// answer arrives before the attempt ends.
	SendTimeout time.Duration
	// CallLimit bounds the wait of an operation, to within an eighth, whatever its
	// caller's context allows: NotApplied(Deadline) if it is in no group,
	// Unknown(Deadline) otherwise. 0 (default): no limit.
	CallLimit time.Duration
	// GiveUp bounds the attempts of one group while there are a leader and a quorum but no
	// answer; the attempt in flight at its end is the last. It is at least SendTimeout.
	GiveUp time.Duration
}

func (c Config) withDefaults() Config {
	c.MaxOperations = cmp.Or(c.MaxOperations, DefaultMaxOperations)
	c.MaxGroupBytes = cmp.Or(c.MaxGroupBytes, DefaultMaxGroupBytes)
	c.MaxResultBytes = cmp.Or(c.MaxResultBytes, raftlog.MaxResultBytes)
	c.QueueLength = cmp.Or(c.QueueLength, DefaultQueueLength)
	c.QueueBytes = cmp.Or(c.QueueBytes, DefaultQueueBytes)
	c.LingerMin = cmp.Or(c.LingerMin, max(2, c.MaxOperations/4))
	c.LeaderWait = cmp.Or(c.LeaderWait, DefaultLeaderWait)
	c.SendTimeout = cmp.Or(c.SendTimeout, DefaultSendTimeout)
	c.GiveUp = cmp.Or(c.GiveUp, max(DefaultGiveUp, c.SendTimeout))
	return c
}

const (
	DefaultMaxEntryBytes = 128 << 10
	DefaultQueueGroups   = 1024
	DefaultBatcherBytes  = 32 << 20
	DefaultAnswerTimeout = 4 * time.Second
	// grace bounds the wait for the outcome of entries in flight after leadership was lost.
	// Raft resolves them within milliseconds.
	grace = 100 * time.Millisecond
)

// HoldLimit bounds how long groups wait for a new leader to commit its first entry. It is
// far longer than that takes, and far shorter than a caller's deadline.
const HoldLimit = 250 * time.Millisecond

// Log is the replicated log, as the leader appends to it.
type Log interface {
	// Append proposes one entry and returns at once. The entry is never changed later, so
	// the log may keep it. The channel gets the entry's outcome, or nothing ever, so every
	// wait for it has another bound.
	Append(entry []byte) <-chan Appended
}

// Appended is the outcome of an entry.
type Appended struct {
	// Results has one result per group of the entry, in order.
	Results []raftlog.GroupResult
	// Err is nil or an *outcome.Error.
	Err error
}

// BatcherEvents are callbacks for metrics. They run on the Batcher's goroutines and must be
// quick.
type BatcherEvents struct {
	// Appending is called for each entry that is about to be proposed.
	Appending func()
	// Appended is called once after each call of Appending, with the entry's outcome; err
	// is nil if the entry was applied.
	Appended func(groups, operations, bytes int, took time.Duration, err error)
	// StartSpan, if set, starts the span of each entry, from its proposal until it was applied.
	StartSpan StartSpan
}

// BatcherConfig is what a Batcher needs: Log, Logger, Events, Header and Now. Zero values of the
// others get defaults.
type BatcherConfig struct {
	Log    Log
	Logger *slog.Logger
	Events BatcherEvents
	// Header returns the format to write and the cluster's id. It is called
	// once for each entry.
	Header func() (format uint32, clusterID []byte)
	// Now is the leader's clock, read once for each entry.
	Now func() time.Time
	// MaxEntryBytes bounds an entry, and a group: at most half of raftlog.MaxEntryBytes.
	// hashicorp/raft suggests entries below half a megabyte.
	MaxEntryBytes int
	// QueueGroups and QueueBytes bound the queued groups.
	QueueGroups int
	QueueBytes  int
	// Linger bounds how long the next entry waits, after an entry was answered, for the
	// same number of groups plus those that arrived in between, if that is more than one. 0
	// (default) disables the wait.
	Linger time.Duration
	// AnswerTimeout bounds the wait for an entry's outcome. It must be longer than a slow
	// disk's sync takes, and should be shorter than Config.SendTimeout.
	AnswerTimeout time.Duration
}

func (c BatcherConfig) withDefaults() BatcherConfig {
	c.MaxEntryBytes = cmp.Or(c.MaxEntryBytes, DefaultMaxEntryBytes)
	c.QueueGroups = cmp.Or(c.QueueGroups, DefaultQueueGroups)
	c.QueueBytes = cmp.Or(c.QueueBytes, max(DefaultBatcherBytes, c.MaxEntryBytes))
	c.AnswerTimeout = cmp.Or(c.AnswerTimeout, DefaultAnswerTimeout)
	return c
}

// StartSpan starts the span of a group of operations, or of an entry of groups. callers are
// their contexts; the slice is reused after the call. A nil Span means that there is no
// span.
type StartSpan func(callers []context.Context, operations int) Span

// Span is the hook for the trace span of one group or entry.
type Span interface {
	// Onto returns ctx with the span in it, for the next part that works on the group.
	Onto(ctx context.Context) context.Context
	// End is called once, with the error of the group or entry. The span of a group whose
	// operations were put back into the queue may end without an error.
	End(err error)
}

func withSpan(ctx context.Context, span Span) context.Context {
	if span == nil {
		return ctx
	}
	return span.Onto(ctx)
}

func endSpan(span Span, err error) {
	if span != nil {
		span.End(err)
	}
}
