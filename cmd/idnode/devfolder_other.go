//go:build !unix

package main

import (
	"errors"
	"os"
)

// lockFolder and readInBackground are never called: dev is refused here.
func lockFolder(string) (*os.File, error) { return nil, errors.ErrUnsupported }

func readInBackground() {}
