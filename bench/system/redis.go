package system

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/idnode/idnode/bench/load"
	"github.com/idnode/idnode/internal/bench"
)

// Redis is one Redis server that writes every change to disk before it answers.
// It is not replicated.
type Redis struct {
	env    Env
	dir    string
	addr   string
	server *process
}

const redisProgram = "redis-server"

// Version is the beginning of what the program says: "Redis server v=7.0.15".
func (r *Redis) Version() string {
	words := strings.Fields(programVersion(redisProgram, "--version"))
	return strings.Join(words[:min(3, len(words))], " ")
}

// Points is the one operation.
func (r *Redis) Points(callers int) []Point {
	return []Point{{Op: "INCR", Callers: callers, Batch: 1}}
}

// Start starts the server.
func (r *Redis) Start(ctx context.Context) error {
	program, err := exec.LookPath(redisProgram)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if r.dir, err = os.MkdirTemp(r.env.Dir, "bench-redis-"); err != nil {
		return err
	}
	addrs, err := freeAddresses(1)
	if err != nil {
		return err
	}
	r.addr = addrs[0]
	host, port, err := net.SplitHostPort(r.addr)
	if err != nil {
		return err
	}
	r.server, err = r.env.start(exec.Command(program, "--bind", host, "--port", port, "--dir", r.dir, "--logfile", "redis.log",
		"--appendonly", "yes", "--appendfsync", "always", "--save", ""))
	if err != nil {
		return err
	}
	client := r.client(1)
	defer client.Close()
	return poll(ctx, func(ctx context.Context) error { return client.Ping(ctx).Err() })
}

// client has a connection for each caller: Redis syncs once for all commands
// that it finds on its connections, so fewer connections would slow it down.
func (r *Redis) client(callers int) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: r.addr, PoolSize: callers, MinIdleConns: callers, MaxRetries: -1})
}

// Measure lets every caller count the same key up.
func (r *Redis) Measure(ctx context.Context, plan load.Plan, p Point) (bench.Report, error) {
	client := r.client(p.Callers)
	defer client.Close()
	call := func(ctx context.Context) (int64, error) { return client.Incr(ctx, "bench").Result() }
	return load.Run(ctx, plan, p.Op, repeated(call, p.Callers))
}

// repeated gives every caller the same call.
func repeated(call load.Call, callers int) []load.Call {
	calls := make([]load.Call, callers)
	for i := range calls {
		calls[i] = call
	}
	return calls
}

// Stop ends the server.
func (r *Redis) Stop() error {
	var err error
	if r.server != nil {
		err = r.server.end(syscall.SIGTERM)
	}
	if removed := os.RemoveAll(r.dir); err == nil {
		err = removed
	}
	return err
}
