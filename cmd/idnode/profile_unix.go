//go:build unix

package main

import (
	"os"
	"syscall"
)

// profileSignal asks a node for a profile.
var profileSignal os.Signal = syscall.SIGUSR1
