// Package result keeps what was measured: as lines of JSON in a file, and as
// series over the runs.
package result

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/idnode/idnode/bench/generator"
	"github.com/idnode/idnode/bench/machine"
	"github.com/idnode/idnode/internal/bench"
)

// Record is one line. Of the fields below Run, one is set.
type Record struct {
	// Run counts the runs from 1; 0 is what concerns all of them.
	Run int `json:"run,omitempty"`
	// About is the first record.
	About *About `json:"about,omitempty"`
	// Skipped says which system was not measured, and why.
	Skipped *Skipped `json:"skipped,omitempty"`
	// Load is a load on a system.
	Load *Load `json:"load,omitempty"`
	// Generator is a generator in one process.
	Generator *generator.Stats `json:"generator,omitempty"`
	// Fsync is the disk.
	Fsync *machine.Fsync `json:"fsync,omitempty"`
}

// About says how and on what it was measured.
type About struct {
	Machine machine.Machine `json:"machine"`
	// Command is what was typed in bench/.
	Command string `json:"command"`
	// Versions are those of everything measured.
	Versions []string `json:"versions"`
	// Runs is how many there should be.
	Runs int `json:"runs"`
	// Seconds is how long each load lasted.
	Seconds float64 `json:"seconds"`
}

// Skipped is a system that was not measured.
type Skipped struct {
	System string `json:"system"`
	Why    string `json:"why"`
}

// Load is what came of a load on a system.
type Load struct {
	System string       `json:"system"`
	Report bench.Report `json:"report"`
}

// Results are the records of one measurement.
type Results []Record

// Write writes a record as a line.
func Write(w io.Writer, r Record) error { return json.NewEncoder(w).Encode(r) }

// Read reads all lines.
func Read(r io.Reader) (Results, error) {
	var all Results
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		var record Record
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(all)+1, err)
		}
		all = append(all, record)
	}
	return all, lines.Err()
}

// About returns what the measurement says of itself.
func (r Results) About() About {
	for _, record := range r {
		if record.About != nil {
			return *record.About
		}
	}
	return About{}
}

// Skipped returns the systems that were not measured, each once.
func (r Results) Skipped() []Skipped {
	var all []Skipped
	for _, record := range r {
		if record.Skipped != nil {
			all = append(all, *record.Skipped)
		}
	}
	return all
}

// Key names one load.
type Key struct {
	System, Op, Via string
	Callers, Batch  int
}

// Loads returns one value of each run's load of that key.
func (r Results) Loads(k Key, value func(bench.Report) float64) Series {
	s := Series{}
	for _, record := range r {
		if record.Load == nil {
			continue
		}
		b := record.Load.Report
		if (Key{record.Load.System, b.Op, b.Via, b.Callers, b.Batch}) == k {
			s[record.Run] = value(b)
		}
	}
	return s
}

// Generators returns one value of each run's measurement of a generator.
func (r Results) Generators(name string, goroutines int, value func(generator.Stats) float64) Series {
	s := Series{}
	for _, record := range r {
		if g := record.Generator; g != nil && g.Name == name && g.Goroutines == goroutines {
			s[record.Run] = value(*g)
		}
	}
	return s
}

// Fsyncs returns one value of each run's look at the disk.
func (r Results) Fsyncs(value func(machine.Fsync) float64) Series {
	s := Series{}
	for _, record := range r {
		if record.Fsync != nil {
			s[record.Run] = value(*record.Fsync)
		}
	}
	return s
}

// Failed returns how many calls failed, by system, operation and reason.
func (r Results) Failed() map[string]int64 {
	failed := map[string]int64{}
	for _, record := range r {
		if record.Load == nil {
			continue
		}
		for reason, n := range record.Load.Report.ErrorReasons {
			failed[record.Load.System+" "+record.Load.Report.Op+": "+reason] += n
		}
	}
	return failed
}
