package client

import (
	"runtime/debug"
	"strings"
)

// userAgent returns the name that nodes see, such as idnode-go/1.2.3. The version is that of
// this module in the program; without one it is "devel".
func userAgent() string {
	const module = "github.com/idnode/idnode"
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if number, released := strings.CutPrefix(m.Version, "v"); m.Path == module && released {
				version = number
			}
		}
	}
	return "idnode-go/" + version
}
