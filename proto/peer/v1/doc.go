// Package peerv1 has the calls between nodes, generated from the proto file
// beside it. They are private to idnode.
package peerv1
