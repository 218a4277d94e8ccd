// Package system has the systems that are measured beside each other. Each is
// started fresh, on loopback, with its data in a folder of its own, and ended by
// its processes' ids.
//
// It owns how each is set up and called. How the figures are kept and shown is
// for others.
package system

import (
	"context"
	"errors"
	"time"

	"github.com/idnode/idnode/bench/load"
	"github.com/idnode/idnode/internal/bench"
)

// ErrMissing says that a system is not installed on this machine.
var ErrMissing = errors.New("not installed")

// Point is one thing to measure of a system.
type Point struct {
	// Op is what is called, Via how, where there is more than one way.
	Op, Via string
	// Callers is how many call at a time.
	Callers int
	// Batch is how many ids one call takes.
	Batch int
}

// System is something that hands out ids. Its methods are called one at a time:
// Start once, then Measure, then Stop, which must be called after a failed Start
// too.
type System interface {
	// Start starts it and returns when it serves. The error is ErrMissing if it is
	// not installed.
	Start(ctx context.Context) error
	// Points are what there is to measure with so many callers.
	Points(callers int) []Point
	// Measure puts the load on.
	Measure(ctx context.Context, plan load.Plan, p Point) (bench.Report, error)
	// Version says what runs.
	Version() string
	// Stop ends its processes and removes its data.
	Stop() error
}

// Env is what systems need from their surroundings.
type Env struct {
	// Dir is where data folders are made; all of them on one disk.
	Dir string
	// Idnode is the path of the idnode program.
	Idnode string
	// SyncDelay is how long each fsync takes beyond what the disk needs.
	SyncDelay time.Duration
}

// The systems' names, in the order they are shown.
const (
	NameIdnode   = "idnode"
	NameEtcd     = "etcd"
	NameRaft     = "raft"
	NameRedis    = "redis"
	NamePostgres = "postgres"
)

// Names returns the names of all systems.
func Names() []string {
	return []string{NameIdnode, NameEtcd, NameRaft, NameRedis, NamePostgres}
}

// New returns a system that was not started yet; name is one of Names.
func New(name string, env Env) System {
	switch name {
	case NameIdnode:
		return &Idnode{env: env}
	case NameEtcd:
		return &Etcd{env: env}
	case NameRaft:
		return &Raft{env: env}
	case NameRedis:
		return &Redis{env: env}
	case NamePostgres:
		return &Postgres{env: env}
	}
	return nil
}

// clusterSize is how many members each cluster has.
const clusterSize = 3
