package cluster

import (
	"context"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/readindex"
)

// awaitFuture starts something of Raft's and waits for it, at most until ctx
// ends: a future of Raft's may never be answered.
func awaitFuture(ctx context.Context, start func() raft.Future) error {
	return readindex.Await(ctx, func() readindex.Future { return start() })
}
