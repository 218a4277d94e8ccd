package main

import (
	"errors"
	"log/slog"

	"github.com/idnode/idnode/internal/config"
)

// newNode puts one node together.
func newNode(*config.Config, *slog.Logger) (server, error) {
	return nil, errors.New("this build has no node")
}
