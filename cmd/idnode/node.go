package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"

	"github.com/idnode/idnode/internal/failpoint"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/node"
	"github.com/idnode/idnode/server/tracing"
)

// newNode assembles a real node.
func newNode(cfg *config.Config, log *slog.Logger) (server, error) {
	traces, err := tracing.Start(context.Background(), tracing.Config{
		Version: versionText(), Instance: cmp.Or(cfg.Tag, cfg.AdvertiseGRPC), Getenv: os.Getenv, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	n, err := node.New(node.Options{Config: cfg, Logger: log, Version: versionText(), Tracing: traces, Now: failpoint.Now})
	if err != nil {
		// A nil *Node in the interface would not be nil.
		return nil, err
	}
	return n, nil
}
