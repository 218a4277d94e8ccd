package main

import (
	"log/slog"

	"github.com/idnode/idnode/internal/config"
	"github.com/idnode/idnode/internal/node"
)

// newNode puts one node together.
func newNode(cfg *config.Config, log *slog.Logger) (server, error) {
	return node.New(node.Options{Config: cfg, Logger: log, Version: versionText()})
}
