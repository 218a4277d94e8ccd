package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set at build time: -ldflags "-X main.version=v1.2.3".
var version string

// versionText returns the version, or what the Go tool knows of the build.
func versionText() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	return builtFrom(info)
}

// builtFrom names the module's version, else the revision that was built, and whether
// anything was changed besides.
func builtFrom(info *debug.BuildInfo) string {
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	built := map[string]string{}
	for _, s := range info.Settings {
		built[s.Key] = s.Value
	}
	revision := built["vcs.revision"]
	if revision == "" {
		return "devel"
	}
	text := "devel-" + revision[:min(12, len(revision))]
	if built["vcs.modified"] == "true" {
		text += "+dirty"
	}
	return text
}

func newVersionCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Args:    cobra.NoArgs,
		Example: "  idnode version",
		RunE: a.enter(func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.stdout, "idnode %s %s %s/%s\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		}),
	}
}
