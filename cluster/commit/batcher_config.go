package commit

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/idnode/idnode/raftlog"
)

// Defaults of BatcherConfig.
const (
	DefaultMaxEntryBytes = 128 << 10
	DefaultQueueGroups   = 1024
	DefaultBatcherBytes  = 32 << 20
	DefaultAnswerTimeout = 4 * time.Second
	DefaultGrace         = 100 * time.Millisecond
)

// HoldLimit bounds how long groups wait for a new leader to commit its first entry. It is
// far longer than that takes, and far shorter than a caller's deadline.
const HoldLimit = 250 * time.Millisecond

// Log is the replicated log, as the leader appends to it.
type Log interface {
	// Append proposes one entry and returns at once. The entry is never changed later, so
	// the log may keep it.
	Append(entry []byte) Future
}

// Future is the outcome of an entry. It may never be resolved, so every wait for it has
// another bound.
type Future interface {
	// Done is closed once Results may be called.
	Done() <-chan struct{}
	// Results returns one result per group of the entry, in order, or an
	// *outcome.Error; any other error counts as Unknown.
	Results() ([]raftlog.GroupResult, error)
}

// BatcherEvents are callbacks for metrics. A nil function is not called. They run on the
// Batcher's goroutines and must be quick.
type BatcherEvents struct {
	// Appending is called for each entry that is about to be proposed.
	Appending func()
	// Appended is called once after each call of Appending, with the entry's outcome; err
	// is nil if the entry was applied.
	Appended func(groups, operations, bytes int, took time.Duration, err error)
	// StartSpan starts the span of each entry, from its proposal until it was applied.
	StartSpan StartSpan
}

// BatcherConfig is what a Batcher needs: Log and Header. Zero values of the others get defaults.
type BatcherConfig struct {
	Log    Log
	Logger *slog.Logger
	Events BatcherEvents
	// Header returns the format to write and the cluster's id. It is called
	// once for each entry.
	Header func() (format uint32, clusterID []byte)
	// Now is the leader's clock, read once for each entry; default time.Now.
	Now func() time.Time
	// InFlight is the number of entries in flight at a time: 1 (default) to 4.
	InFlight int
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
	// Grace bounds the wait for the outcome of entries in flight after leadership was lost.
	// Raft resolves them within milliseconds.
	Grace time.Duration
}

func (c BatcherConfig) withDefaults() BatcherConfig {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.InFlight = cmp.Or(c.InFlight, 1)
	c.MaxEntryBytes = cmp.Or(c.MaxEntryBytes, DefaultMaxEntryBytes)
	c.QueueGroups = cmp.Or(c.QueueGroups, DefaultQueueGroups)
	c.QueueBytes = cmp.Or(c.QueueBytes, max(DefaultBatcherBytes, c.MaxEntryBytes))
	c.AnswerTimeout = cmp.Or(c.AnswerTimeout, DefaultAnswerTimeout)
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	return c
}
