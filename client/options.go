package client

import (
	"github.com/idnode/idnode/client/idnodev1"
)

// Option changes one call. A call refuses an option that does not apply to it.
type Option struct {
	name string
	// needs has what a call must have for the option to apply.
	needs features
	set   func(*options)
}

// features are the parts of a call that options change.
type features uint8

const (
	hasSeparator features = 1 << iota
	hasRequestID
	hasFirstSize
	hasClaim
	hasExpected
	isSeed
	isDelete
	isRead
)

type options struct {
	database    string
	separator   string
	requestID   string
	retrySince  *uint64
	firstSize   int64
	claim       bool
	force       bool
	expected    *int64
	forget      bool
	consistency idnodev1.Consistency
	// err is the error of an option that does not apply.
	err error
}

// options returns the options of a call with these features. Every call has a database.
func (c *Client) options(list []Option, call features) options {
	return options{database: c.cfg.Database}.with(list, call)
}

// with returns the options of a call of a handle that has those of o.
func (o options) with(list []Option, call features) options {
	for _, option := range list {
		if option.needs&^call != 0 {
			o.err = invalidField("INVALID_OPTION", "", option.name+" does not apply to this call")
			continue
		}
		option.set(&o)
	}
	return o
}

// WithDatabase sets the database instead of Config.Database.
func WithDatabase(database string) Option {
	return Option{"WithDatabase", 0, func(o *options) { o.database = database }}
}

// WithSeparator sets the separator instead of "/".
func WithSeparator(separator string) Option {
	return Option{"WithSeparator", hasSeparator, func(o *options) { o.separator = separator }}
}

// WithRequestID sets the call's request id, 1 to 64 bytes, unique per database: the same call
// with the same id returns the same answer and takes nothing, even from another process.
// Without it every call gets a random id. Server-side ids and GUIDs have none. An empty id is refused.
func WithRequestID(id string) Option {
	return Option{"WithRequestID", hasRequestID, func(o *options) { o.setRequestID(id, nil) }}
}

// RequestID names a call that was made, so that the same call again counts once.
type RequestID struct {
	// ID is the call's request id, made by the client unless WithRequestID sets it.
	ID string
	// Since is the index that the cluster's log had reached before the call; 0 if it was not known.
	Since uint64
}

// WithRetryOf marks the call as the repetition of the call that failed with this Error.RequestID. If
// the cluster does not remember request ids from then, the error is ErrRequestIDExpired, and
// nothing is counted twice. An empty id is refused.
func WithRetryOf(id RequestID) Option {
	return Option{"WithRetryOf", hasRequestID, func(o *options) { o.setRequestID(id.ID, &id.Since) }}
}

// setRequestID refuses an empty id: the call would count each time.
func (o *options) setRequestID(id string, since *uint64) {
	o.requestID, o.retrySince = id, since
	if id == "" {
		o.err = invalidField("INVALID_REQUEST_ID", "request_id", "the request id is empty")
	}
}

// WithFirstSize sets the size of a handle's first range, 1 to 1,048,576 numbers. Later sizes
// follow use.
func WithFirstSize(n int64) Option {
	return Option{"WithFirstSize", hasFirstSize, func(o *options) { o.firstSize = n }}
}

// WithClaim claims the id for the caller; for semantic ids only.
func WithClaim() Option {
	return Option{"WithClaim", hasClaim, func(o *options) { o.claim = true }}
}

// WithForce sets exactly the value, even a lower one: values may then be given twice.
func WithForce() Option {
	return Option{"WithForce", isSeed, func(o *options) { o.force = true }}
}

// WithExpected seeds an identity, or sets a tag, only if this is the current value; otherwise the
// error is ErrConcurrency.
func WithExpected(value int64) Option {
	return Option{"WithExpected", hasExpected, func(o *options) { o.expected = &value }}
}

// WithForget makes a deleted identity forget its value: it then starts at 1 again, and values
// are given twice.
func WithForget() Option {
	return Option{"WithForget", isDelete, func(o *options) { o.forget = true }}
}

// WithStale reads the state of the node that is asked, which may lack the newest changes but
// needs no quorum.
func WithStale() Option {
	return Option{"WithStale", isRead, func(o *options) { o.consistency = idnodev1.Consistency_CONSISTENCY_STALE }}
}
