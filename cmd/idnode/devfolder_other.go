//go:build !unix

package main

import (
	"errors"
	"io/fs"
	"os"
)

// holdLock is never called: dev is refused here.
func holdLock(*os.File) error { return errors.ErrUnsupported }

// abandoned is never called either.
func abandoned(string, fs.FileInfo) bool { return false }

// readInBackground is never called either.
func readInBackground() {}
