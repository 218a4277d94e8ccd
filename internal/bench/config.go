// Package bench puts a load on a cluster and measures it: calls and ids a second, how long calls take,
// errors by reason. It also checks what a benchmark of an id service must check: that no id came twice.
//
// It owns the callers, the statistics and the check. How the statistics are shown, and
// where the cluster comes from, is for its user. The load is bounded in time.
package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/idnode/idnode/client"
)

// The operations that can be measured.
const (
	// Identity takes values of identities.
	Identity   = "identity"
	ServerSide = "server-side"
	// Range reserves HiLo ranges, each of the batch's size.
	Range = "range"
	// Series takes numbers for documents, of one series for each name.
	Series = "series"
	GUID   = "guid"
	// Echo is the least a gRPC call to the same server can cost: a health check
	// of a name that is always serving.
	Echo = "echo"
)

// The ways to make the calls.
const (
	// Unary makes one gRPC call per operation.
	Unary = "unary"
	// Stream lets the callers of an endpoint share one Exchange stream.
	Stream = "stream"
	// ViaClient goes through idnode's Go client.
	ViaClient = "client"
)

// Ops returns the operations that can be measured.
func Ops() []string { return []string{Identity, ServerSide, Range, Series, GUID, Echo} }

// Vias returns the ways to make the calls.
func Vias() []string { return []string{ViaClient, Unary, Stream} }

// Config says what to measure.
type Config struct {
	// Op is one of Ops, Via one of Vias.
	Op, Via string
	// Callers is how many calls are in flight at any time, 1 to 100,000. They are spread over Conns.
	Callers int
	// Batch is how many ids one call takes, 1 to 1,000,000.
	Batch int
	// Names is over how many names, or tags, the calls are spread.
	Names int
	// Duration is how long the load lasts, up to an hour.
	Duration time.Duration
	// Database is where the names are.
	Database string
	// Prefix begins every name; a prefix of its own for each run makes names
	// that no other caller uses, which the check needs.
	Prefix string
	// Conns are connections to one or more nodes.
	Conns []grpc.ClientConnInterface
	// Client is needed for ViaClient, and used in place of Conns; series are defined through
	// Conns all the same.
	Client *client.Client
}

const (
	maxCallers  = 100_000
	maxBatch    = 1_000_000
	maxGUIDs    = 10_000 // as many as one answer holds
	maxKeys     = 1000   // as many as one call has
	maxNames    = 10_000_000
	maxSeries   = 1000 // each is defined first
	maxDuration = time.Hour
)

// Validate checks the bounds. Conns and Client may come later.
func (c Config) Validate() error {
	batches, names := maxBatch, maxNames
	switch c.Op {
	case GUID:
		batches = maxGUIDs
	case Series:
		batches, names = maxKeys, maxSeries
	}
	switch {
	case !slices.Contains(Ops(), c.Op):
		return fmt.Errorf("the operation must be one of %s, not %q", strings.Join(Ops(), ", "), c.Op)
	case !slices.Contains(Vias(), c.Via):
		return fmt.Errorf("the way must be one of %s, not %q", strings.Join(Vias(), ", "), c.Via)
	case c.Op == Echo && c.Via != Unary:
		return errors.New("echo is a unary call")
	case c.Op == Series && c.Via == Stream:
		return errors.New("a stream takes no numbers of series")
	case c.Callers < 1 || c.Callers > maxCallers:
		return fmt.Errorf("callers must be 1 to %d, not %d", maxCallers, c.Callers)
	case c.Batch < 1 || c.Batch > batches:
		return fmt.Errorf("the batch of %s must be 1 to %d, not %d", c.Op, batches, c.Batch)
	case c.Names < 1 || c.Names > names:
		return fmt.Errorf("names must be 1 to %d, not %d", names, c.Names)
	case c.Duration <= 0 || c.Duration > maxDuration:
		return fmt.Errorf("the duration must be above 0 and at most %s, not %s", maxDuration, c.Duration)
	}
	return nil
}
