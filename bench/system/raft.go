package system

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/idnode/idnode/bench/load"
	"github.com/idnode/idnode/internal/bench"
)

// Raft is hashicorp/raft with nothing around it: three processes, one log entry
// for each id, and callers inside the leader's process, so without any call
// over the network but Raft's own.
type Raft struct {
	env     Env
	dir     string
	members []*process
}

const raftOp = "apply"

// Version is that of the libraries.
func (r *Raft) Version() string {
	return fmt.Sprintf("hashicorp/raft %s, raft-boltdb %s, bbolt %s", Module("github.com/hashicorp/raft"),
		Module("github.com/hashicorp/raft-boltdb/v2"), Module("go.etcd.io/bbolt"))
}

// Points is the one operation.
func (r *Raft) Points(callers int) []Point {
	return []Point{{Op: raftOp, Callers: callers, Batch: 1}}
}

// Start starts the members; the first of them founds the cluster, last.
func (r *Raft) Start(context.Context) (err error) {
	if r.dir, err = os.MkdirTemp(r.env.Dir, "bench-raft-"); err != nil {
		return err
	}
	addrs, err := freeAddresses(clusterSize)
	if err != nil {
		return err
	}
	for i, addr := range addrs {
		args := []string{"-self", addr, "-dir", filepath.Join(r.dir, fmt.Sprint(i))}
		if i == clusterSize-1 {
			args = append(args, "-found", strings.Join(addrs, ","))
		}
		p, err := r.env.startMember("raft-member", args...)
		if err != nil {
			return err
		}
		r.members = append(r.members, p)
		if err := p.awaitReady(); err != nil {
			return err
		}
	}
	return nil
}

// Measure lets the leader put the load on itself.
func (r *Raft) Measure(_ context.Context, plan load.Plan, p Point) (bench.Report, error) {
	leader := r.members[clusterSize-1]
	if err := json.NewEncoder(leader.in).Encode(raftOrder{Callers: p.Callers, Plan: plan}); err != nil {
		return bench.Report{}, err
	}
	line, err := leader.out.ReadBytes('\n')
	if err != nil {
		return bench.Report{}, fmt.Errorf("the Raft leader ended: %w", err)
	}
	var answer raftAnswer
	if err := json.Unmarshal(line, &answer); err != nil {
		return bench.Report{}, err
	}
	if answer.Error != "" {
		return bench.Report{}, errors.New(answer.Error)
	}
	return answer.Report, nil
}

// Stop ends the members.
func (r *Raft) Stop() error {
	return errors.Join(endAll(r.members, syscall.SIGTERM), os.RemoveAll(r.dir))
}
