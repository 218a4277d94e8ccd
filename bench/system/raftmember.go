package system

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"github.com/idnode/idnode/bench/load"
	"github.com/idnode/idnode/internal/bench"
)

// raftOrder asks a member to put a load on itself.
type raftOrder struct {
	Callers int
	Plan    load.Plan
}

// raftAnswer is what came of it.
type raftAnswer struct {
	Report bench.Report
	Error  string
}

// raftMember is one node of a bare Raft cluster. The leader carries out what
// it reads from its standard input, until that ends.
func raftMember(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("raft-member", flag.ContinueOnError)
	self := flags.String("self", "", "address of this member, which is its name too")
	dir := flags.String("dir", "", "where its data are")
	found := flags.String("found", "", "addresses of all members, with commas between, on the one that founds the cluster")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r, err := openRaft(*self, *dir, *found)
	if err != nil {
		return err
	}
	if *found != "" {
		err = poll(ctx, func(context.Context) error { return r.VerifyLeader().Error() })
	}
	if err == nil {
		err = sayReady()
	}
	if err == nil {
		err = obey(ctx, r)
	}
	return errors.Join(err, r.Shutdown().Error())
}

// openRaft starts Raft with the settings that idnode gives it, as far as they
// are the library's own. Only the founder knows the members at first, so it is
// the founder that leads.
func openRaft(self, dir, found string) (*raft.Raft, error) {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(self)
	c.HeartbeatTimeout = 250 * time.Millisecond
	c.ElectionTimeout = 250 * time.Millisecond
	c.LeaderLeaseTimeout = 200 * time.Millisecond
	c.CommitTimeout = 20 * time.Millisecond
	c.MaxAppendEntries = 64
	c.NoLegacyTelemetry = true
	c.Logger = hclog.NewNullLogger()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	store, err := raftboltdb.New(raftboltdb.Options{Path: filepath.Join(dir, "raft.db"), BoltOptions: &bbolt.Options{
		NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, InitialMmapSize: 256 << 20,
	}})
	if err != nil {
		return nil, err
	}
	snapshots, err := raft.NewFileSnapshotStore(dir, 1, io.Discard)
	if err != nil {
		return nil, err
	}
	transport, err := raft.NewTCPTransportWithConfig(self, nil, &raft.NetworkTransportConfig{
		MaxPool: 3, Timeout: 10 * time.Second, MaxRPCsInFlight: 1, Logger: hclog.NewNullLogger(),
	})
	if err != nil {
		return nil, err
	}
	if found != "" {
		var all raft.Configuration
		for _, addr := range strings.Split(found, ",") {
			all.Servers = append(all.Servers, raft.Server{ID: raft.ServerID(addr), Address: raft.ServerAddress(addr)})
		}
		if err := raft.BootstrapCluster(c, store, store, snapshots, transport, all); err != nil {
			return nil, err
		}
	}
	return raft.NewRaft(c, &counter{}, store, store, snapshots, transport)
}

// obey carries out one order after the other.
func obey(ctx context.Context, r *raft.Raft) error {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var order raftOrder
		if err := json.Unmarshal(lines.Bytes(), &order); err != nil {
			return err
		}
		var answer raftAnswer
		var err error
		answer.Report, err = load.Run(ctx, order.Plan, raftOp, repeated(apply(r), order.Callers))
		if err != nil {
			answer.Error = err.Error()
		}
		if err := out.Encode(answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// apply makes one log entry for one id.
func apply(r *raft.Raft) load.Call {
	entry := []byte("next")
	return func(context.Context) (int64, error) {
		f := r.Apply(entry, 10*time.Second)
		if err := f.Error(); err != nil {
			return 0, err
		}
		return f.Response().(int64), nil
	}
}

// counter is the state machine: every entry counts up by one.
type counter struct{ last atomic.Int64 }

func (c *counter) Apply(*raft.Log) any                 { return c.last.Add(1) }
func (c *counter) Snapshot() (raft.FSMSnapshot, error) { return counterSnapshot(c.last.Load()), nil }

func (c *counter) Restore(from io.ReadCloser) (err error) {
	defer from.Close()
	var last int64
	if err := json.NewDecoder(from).Decode(&last); err != nil {
		return err
	}
	c.last.Store(last)
	return nil
}

type counterSnapshot int64

func (s counterSnapshot) Persist(to raft.SnapshotSink) error {
	if err := json.NewEncoder(to).Encode(int64(s)); err != nil {
		return errors.Join(err, to.Cancel())
	}
	return to.Close()
}

func (counterSnapshot) Release() {}
