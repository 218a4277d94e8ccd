package main

import (
	"log/slog"

	"github.com/idnode/idnode/internal/config"
	"github.com/idnode/idnode/internal/node"
)

// newNode puts one real node together.
func newNode(cfg *config.Config, log *slog.Logger) (server, error) {
	n, err := node.New(node.Options{Config: cfg, Logger: log, Version: versionText()})
	if err != nil {
		// A nil *Node in the interface would not be nil.
		return nil, err
	}
	return n, nil
}
