//go:build !unix

package main

import (
	"context"
	"errors"
	"io"
)

// makeDevFolder and readInBackground are never called: dev is refused here.
func makeDevFolder() (string, func() error, error) { return "", nil, errors.ErrUnsupported }

func readInBackground() {}

// benchCluster cannot be here, because serve does not run.
type benchCluster struct{ endpoints []string }

func startBenchCluster(context.Context, io.Writer, int, []string) (*benchCluster, error) {
	return nil, usagef("--cluster runs on Linux and macOS; on Windows give a cluster with --endpoint")
}

func (c *benchCluster) end() {}
