package client

import (
	"cmp"

	"github.com/idnode/idnode/docid"
	idnodev1 "github.com/idnode/idnode/proto/idnode/v1"
)

// Option changes one call. Options that do not apply to a call are ignored.
type Option func(*options)

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
}

func (c *Client) options(list []Option) options {
	o := options{database: c.cfg.Database}
	for _, set := range list {
		set(&o)
	}
	return o
}

func (o options) parts() string { return cmp.Or(o.separator, docid.DefaultSeparator) }

// WithDatabase sets the database instead of Config.Database.
func WithDatabase(database string) Option { return func(o *options) { o.database = database } }

// WithSeparator sets the separator instead of "/".
func WithSeparator(separator string) Option { return func(o *options) { o.separator = separator } }

// WithRequestID sets the call's request id, 1 to 64 bytes, unique per database: the same call
// with the same id returns the same answer and takes nothing, even from another process.
// Without it every call gets a random id. Calls that take server-side ids or GUIDs ignore it.
func WithRequestID(id string) Option { return func(o *options) { o.requestID = id } }

// WithRetrySince marks the call as the repetition of an earlier call with the same request
// id, before which the log had reached index (Error.RetrySince). If the cluster does not
// remember request ids from then, the error is ErrRequestIDExpired, and nothing is counted
// twice.
func WithRetrySince(index uint64) Option { return func(o *options) { o.retrySince = &index } }

// WithClaim claims the id for the caller; for semantic ids only.
func WithClaim() Option { return func(o *options) { o.claim = true } }

// WithForce sets exactly the value, even a lower one: values may then be given twice.
func WithForce() Option { return func(o *options) { o.force = true } }

// WithExpected seeds only if this is the current value; otherwise the error is
// ErrConcurrency.
func WithExpected(value int64) Option { return func(o *options) { o.expected = &value } }

// WithForget makes a deleted identity forget its value: it then starts at 1 again, and values
// are given twice.
func WithForget() Option { return func(o *options) { o.forget = true } }

// WithStale reads the state of the node that is asked, which may lack the newest changes but
// needs no quorum.
func WithStale() Option {
	return func(o *options) { o.consistency = idnodev1.Consistency_CONSISTENCY_STALE }
}
