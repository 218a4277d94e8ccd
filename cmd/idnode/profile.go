package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/pprof"
	"time"

	"github.com/idnode/idnode/internal/pause"
)

// profileTime is how long the processor's profile of a node is taken.
const profileTime = 10 * time.Second

// profiles writes a profile into a folder of the data directory for each of asked, one after the other, until ctx ends.
func profiles(ctx context.Context, asked <-chan os.Signal, dataDir string, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
		dir := filepath.Join(dataDir, "profiles", time.Now().UTC().Format("20060102T150405Z"))
		log.Info("a profile is taken", "seconds", profileTime.Seconds(), "folder", dir)
		if err := profile(ctx, dir, profileTime); err != nil {
			log.Error("no profile was taken", "error", err)
		}
	}
}

// profile writes what the processor does for a time, and then the heap and the goroutines, as files for 'go tool pprof'.
func profile(ctx context.Context, dir string, d time.Duration) (err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	write := func(name string, f func(*os.File) error) {
		file, failed := os.OpenFile(filepath.Join(dir, name+".pprof"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
		if failed == nil {
			failed = errors.Join(f(file), file.Close())
		}
		err = errors.Join(err, failed)
	}
	write("cpu", func(file *os.File) error {
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
		pause.For(ctx, d)
		return nil
	})
	for _, name := range []string{"heap", "goroutine"} {
		write(name, func(file *os.File) error { return pprof.Lookup(name).WriteTo(file, 0) })
	}
	return err
}
