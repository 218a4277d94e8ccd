// Command replay runs a test binary for WebAssembly (GOOS=wasip1) so that every
// run is the same: one thread, random numbers and clocks that begin at the same
// values each time.
//
//	replay simulation.wasm FOLDER -test.run TestSeeds -seed 1
//
// The arguments after the folder, which the binary sees as /, are the binary's.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: replay BINARY FOLDER [ARGUMENT...]")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the binary to its end. wazero's defaults for clocks and random numbers
// are the same in each run; nothing of them is changed here.
func run(ctx context.Context, binary, folder string, arguments []string) error {
	code, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	wasi_snapshot_preview1.MustInstantiate(ctx, runtime)
	config := wazero.NewModuleConfig().
		WithArgs(append([]string{binary}, arguments...)...).
		WithStdout(os.Stdout).WithStderr(os.Stderr).
		WithFSConfig(wazero.NewFSConfig().WithReadOnlyDirMount(folder, "/"))
	_, err = runtime.InstantiateWithConfig(ctx, code, config)
	var exit *sys.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 0 {
		return nil
	}
	return err
}
