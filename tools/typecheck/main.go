// Command typecheck checks packages for another system by their sources alone. To build
// them there takes ten times as long, and finds what the linker misses besides.
//
//	GOOS=darwin GOARCH=arm64 typecheck ./cmd/idnode
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	found, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax}, os.Args[1:]...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "typecheck:", err)
		os.Exit(1)
	}
	if packages.PrintErrors(found) > 0 {
		os.Exit(1)
	}
}
