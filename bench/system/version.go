package system

import (
	"os/exec"
	"runtime/debug"
	"strings"
)

// Module returns the version of a Go module that this program is built with.
func Module(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "unknown"
}

// programVersion is the first line of what a program says of its version.
func programVersion(program string, args ...string) string {
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}
