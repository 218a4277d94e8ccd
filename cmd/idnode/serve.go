package main

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"
)

// server is one node, as serve and dev run it.
type server interface {
	// Run serves until ctx ends, then stops in bounded time and returns nil, or
	// returns the error that ended the node.
	Run(ctx context.Context) error
	// Ready returns when the node serves with a quorum.
	Ready(ctx context.Context) error
	GRPCAddr() string
	RaftAddr() string
	HTTPAddr() string
}

func (a *app) serveCommand() *cobra.Command {
	return &cobra.Command{Use: "serve", GroupID: groupServer}
}
func (a *app) newServer(flags []string, log *slog.Logger) (server, error) { return nil, nil }
