package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/idnode/idnode/bench/generator"
	"github.com/idnode/idnode/bench/load"
	"github.com/idnode/idnode/bench/machine"
	"github.com/idnode/idnode/bench/result"
	"github.com/idnode/idnode/bench/system"
)

const (
	// fsyncLasts is how long the disk is looked at in each run.
	fsyncLasts = time.Second
	// generatorLasts is how long one generator runs, about.
	generatorLasts = 200 * time.Millisecond
)

// generatorModules are where the measured generators come from.
var generatorModules = []string{
	"github.com/google/uuid", "github.com/oklog/ulid/v2", "github.com/bwmarrin/snowflake", "github.com/sony/sonyflake/v2",
	"github.com/redis/go-redis/v9", "github.com/jackc/pgx/v5", "google.golang.org/grpc",
}

// measurement is one in progress.
type measurement struct {
	options
	env      system.Env
	systems  []string
	file     io.Writer
	progress io.Writer
	results  result.Results
}

// measure measures everything so many times, in turns. What it finds is written
// to file at once.
func measure(ctx context.Context, o options, file, progress io.Writer) (result.Results, error) {
	build, err := os.MkdirTemp(o.dir, "bench-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(build) // It is in the folder for temporary files.
	m := &measurement{
		options: o, file: file, progress: progress,
		env: system.Env{Dir: o.dir, Idnode: filepath.Join(build, "idnode"), SyncDelay: o.syncDelay},
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", m.env.Idnode, "./cmd/idnode")
	cmd.Dir, cmd.Stderr = o.repository, progress
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("building idnode: %w", err)
	}
	if err := generator.SetDuration(generatorLasts); err != nil {
		return nil, err
	}
	if err := m.findSystems(ctx); err != nil {
		return nil, err
	}
	for run := 1; run <= o.runs; run++ {
		if err := m.run(ctx, run); err != nil {
			return nil, fmt.Errorf("run %d: %w", run, err)
		}
	}
	return m.results, nil
}

func (m *measurement) note(r result.Record) error {
	m.results = append(m.results, r)
	return result.Write(m.file, r)
}

// findSystems starts each system once, to see whether it is there.
func (m *measurement) findSystems(ctx context.Context) error {
	about := result.About{
		Machine: machine.Describe(m.repository), Command: m.command, Runs: m.runs, Seconds: m.duration.Seconds(),
	}
	var skipped []result.Record
	for _, name := range system.Names() {
		if !slices.Contains(m.only, name) {
			continue
		}
		s := system.New(name, m.env)
		err := s.Start(ctx)
		switch stopped := s.Stop(); {
		case errors.Is(err, system.ErrMissing):
			fmt.Fprintf(m.progress, "skipped: %s: %s\n", name, err)
			skipped = append(skipped, result.Record{Skipped: &result.Skipped{System: name, Why: err.Error()}})
			continue
		case err != nil || stopped != nil:
			return fmt.Errorf("%s: %w", name, errors.Join(err, stopped))
		}
		m.systems = append(m.systems, name)
		about.Versions = append(about.Versions, s.Version())
	}
	for _, path := range generatorModules {
		about.Versions = append(about.Versions, path+" "+system.Module(path))
	}
	if err := m.note(result.Record{About: &about}); err != nil {
		return err
	}
	for _, r := range skipped {
		if err := m.note(r); err != nil {
			return err
		}
	}
	return nil
}

// run measures everything once. Every run begins with another system, so that
// none always has the same neighbour before it.
func (m *measurement) run(ctx context.Context, run int) error {
	fsync, err := machine.MeasureFsync(m.dir, fsyncLasts)
	if err != nil {
		return err
	}
	if err := m.note(result.Record{Run: run, Fsync: &fsync}); err != nil {
		return err
	}
	for i := range m.systems {
		name := m.systems[(i+run)%len(m.systems)]
		if err := m.runSystem(ctx, run, name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if !slices.Contains(m.only, nameGenerators) {
		return nil
	}
	return m.runGenerators(ctx, run)
}

// runSystem starts a system, measures all there is to it, and ends it, so that
// nothing else runs while another is measured.
func (m *measurement) runSystem(ctx context.Context, run int, name string) (err error) {
	s := system.New(name, m.env)
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := s.Start(ctx); err != nil {
		return err
	}
	plan := load.Plan{WarmUp: m.warmUp, Duration: m.duration}
	for _, callers := range m.callers {
		for _, p := range s.Points(callers) {
			r, err := s.Measure(ctx, plan, p)
			if err != nil {
				return fmt.Errorf("%+v: %w", p, err)
			}
			fmt.Fprintf(m.progress, "run %d  %-8s  %-12s %-6s %4d callers, batch %4d  %10.0f calls/s %10.0f ids/s  p50 %d µs\n",
				run, name, r.Op, r.Via, r.Callers, r.Batch, r.CallsPerS, r.IDsPerS, r.P50us)
			if err := m.note(result.Record{Run: run, Load: &result.Load{System: name, Report: r}}); err != nil {
				return err
			}
		}
	}
	return nil
}

// generatorGoroutines is how many goroutines share a generator.
var generatorGoroutines = []int{1, 8}

func (m *measurement) runGenerators(ctx context.Context, run int) error {
	for _, name := range generator.Names() {
		for _, goroutines := range generatorGoroutines {
			if err := ctx.Err(); err != nil {
				return err
			}
			f, err := generator.Measure(name, goroutines)
			if err != nil {
				return err
			}
			fmt.Fprintf(m.progress, "run %d  %-25s %d goroutines  %8.1f ns/id  %d allocations\n", run, name, goroutines, f.NsPerID, f.AllocsPerID)
			if err := m.note(result.Record{Run: run, Generator: &f}); err != nil {
				return err
			}
		}
	}
	return nil
}
