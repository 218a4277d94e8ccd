package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/idnode/idnode/bench/load"
	"github.com/idnode/idnode/internal/bench"
)

// Etcd is a cluster of three etcd members, each a process of its own: etcd's
// server embedded in this program. An id is the revision of a put.
type Etcd struct {
	env     Env
	dir     string
	members []*process
	// clients has one client, and so one connection, for each member, the leader's
	// first. That is as many connections as idnode bench opens.
	clients []*clientv3.Client
}

// Version is that of etcd's server.
func (e *Etcd) Version() string { return "etcd " + Module("go.etcd.io/etcd/server/v3") }

// Points is the one operation.
func (e *Etcd) Points(callers int) []Point {
	return append([]Point{{Op: "put", Callers: callers, Batch: 1}}, ghzPoints("put", callers)...)
}

// Start starts the members and connects to each.
func (e *Etcd) Start(ctx context.Context) error {
	addrs, err := freeAddresses(2 * clusterSize)
	if err != nil {
		return err
	}
	clients, peers := addrs[:clusterSize], addrs[clusterSize:]
	if err := e.startMembers(clients, peers); err != nil {
		return err
	}
	for _, addr := range clients {
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Context: ctx})
		if err != nil {
			return err
		}
		e.clients = append(e.clients, client)
	}
	return poll(ctx, e.leaderFirst)
}

func (e *Etcd) startMembers(clients, peers []string) (err error) {
	if e.dir, err = os.MkdirTemp(e.env.Dir, "bench-etcd-"); err != nil {
		return err
	}
	var cluster []string
	for i, peer := range peers {
		cluster = append(cluster, fmt.Sprintf("m%d=http://%s", i, peer))
	}
	for i := range clusterSize {
		name := fmt.Sprintf("m%d", i)
		p, err := e.env.startMember("etcd-member", "-name", name, "-dir", filepath.Join(e.dir, name),
			"-client", clients[i], "-peer", peers[i], "-cluster", strings.Join(cluster, ","))
		if err != nil {
			return err
		}
		e.members = append(e.members, p)
	}
	for _, p := range e.members {
		if err := p.awaitReady(); err != nil {
			return err
		}
	}
	return nil
}

// leaderFirst orders the clients so that a lone caller calls the leader.
func (e *Etcd) leaderFirst(ctx context.Context) error {
	for i, client := range e.clients {
		s, err := client.Status(ctx, client.Endpoints()[0])
		if err != nil {
			return err
		}
		if s.Leader == s.Header.MemberId {
			e.clients[0], e.clients[i] = client, e.clients[0]
			return nil
		}
	}
	return errors.New("no etcd member leads")
}

// Measure spreads the callers over the members; ghz calls the leader.
func (e *Etcd) Measure(ctx context.Context, plan load.Plan, p Point) (bench.Report, error) {
	if p.Via == ViaGhz {
		leader := e.clients[0].Endpoints()[0]
		return ghz(ctx, plan, p, e.dir, leader, "etcdserverpb.KV.Put", `{"key":"YmVuY2g="}`, etcdProto)
	}
	var calls []load.Call
	for i := range p.Callers {
		client := e.clients[i%len(e.clients)]
		calls = append(calls, func(ctx context.Context) (int64, error) {
			r, err := client.Put(ctx, "bench", "")
			if err != nil {
				return 0, err
			}
			return r.Header.Revision, nil
		})
	}
	return load.Run(ctx, plan, p.Op, calls)
}

// Stop ends the members.
func (e *Etcd) Stop() error {
	var err error
	for _, client := range e.clients {
		err = errors.Join(err, client.Close())
	}
	return errors.Join(err, endAll(e.members, syscall.SIGTERM), os.RemoveAll(e.dir))
}
