package cluster

import (
	"context"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/readindex"
)

// awaitFuture starts a Raft call and waits for its future, until ctx ends: a future may
// never resolve.
func awaitFuture(ctx context.Context, start func() raft.Future) error {
	return readindex.Await(ctx, func() readindex.Future { return start() })
}
