package peer

import (
	"context"

	"google.golang.org/grpc/metadata"
)

// Metadata keys of an introduction. Values of keys that end in -bin are raw.
const (
	keyNodeID    = "idnode-node-id-bin"
	keyClusterID = "idnode-cluster-id-bin"
	keyTag       = "idnode-node-tag"
)

// Introduction is a node's identity as the node states it.
type Introduction struct {
	// ClusterID is the node's cluster; empty if it has none yet.
	ClusterID []byte
	// ID is the node's raw Raft id.
	ID []byte
	// Tag is the node's tag; empty if it has none yet.
	Tag string
}

// outgoing adds the introduction to the calls made with ctx.
func (i Introduction) outgoing(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, keyNodeID, string(i.ID), keyClusterID, string(i.ClusterID), keyTag, i.Tag)
}

func introductionOf(ctx context.Context) Introduction {
	md, _ := metadata.FromIncomingContext(ctx)
	return Introduction{ClusterID: []byte(first(md, keyClusterID)), ID: []byte(first(md, keyNodeID)), Tag: first(md, keyTag)}
}

func first(md metadata.MD, key string) string {
	if values := md.Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}
