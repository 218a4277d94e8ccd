//go:build !unix

package main

import (
	"io/fs"
	"os"
	"path/filepath"
)

// holdLock has nothing to do: Windows does not remove a file that is open.
func holdLock(*os.File) error { return nil }

// abandoned says whether a folder's process is dead: then the lock can be removed. Each
// user has a folder of his own for temporary files.
func abandoned(dir string, _ fs.FileInfo) bool { return os.Remove(filepath.Join(dir, devLock)) == nil }
