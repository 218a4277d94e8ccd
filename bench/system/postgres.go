package system

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idnode/idnode/bench/load"
	"github.com/idnode/idnode/internal/bench"
)

// Postgres is one PostgreSQL server with its defaults, which are durable. It is
// not replicated.
type Postgres struct {
	env    Env
	dir    string
	url    string
	server *process
	// keys is how many documents got a key.
	keys atomic.Int64
}

// postgresConns is the most connections that are opened. Every one is a process
// of the server, and more of them than that make it slower.
const postgresConns = 64

// What the operations of one statement do. The sequence is fast because it writes its log
// once for 32 values and leaves holes; the row has none, and is locked until
// each commit is on disk.
var postgresOps = map[string]string{
	"nextval":     "SELECT nextval('bench_sequence')",
	"counter row": "UPDATE bench_counter SET value = value + 1 RETURNING value",
	numberedKey:   numberKey,
}

const postgresSchema = `
CREATE SEQUENCE bench_sequence;
CREATE TABLE bench_counter (value bigint NOT NULL);
INSERT INTO bench_counter VALUES (0);` + numbersSchema

// Version is what the program says.
func (s *Postgres) Version() string {
	program, err := postgresProgram("postgres")
	if err != nil {
		return "unknown"
	}
	return programVersion(program, "--version")
}

// postgresProgram finds a program of the newest PostgreSQL. Debian keeps them off
// the path.
func postgresProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("%w: no %s", ErrMissing, name)
	}
	return slices.Max(found), nil
}

// Points are all operations.
func (s *Postgres) Points(callers int) []Point {
	return []Point{
		{Op: "nextval", Callers: callers, Batch: 1},
		{Op: "counter row", Callers: callers, Batch: 1},
		{Op: numberedKey, Callers: callers, Batch: 1},
		{Op: lockedWork, Callers: callers, Batch: 1},
	}
}

// Start makes a database and starts the server on it.
func (s *Postgres) Start(ctx context.Context) error {
	initdb, err := postgresProgram("initdb")
	if err != nil {
		return err
	}
	server, err := postgresProgram("postgres")
	if err != nil {
		return err
	}
	who, err := unprivileged()
	if err != nil {
		return err
	}
	if err := s.makeDir(who); err != nil {
		return err
	}
	data := filepath.Join(s.dir, "data")
	if out, err := who.command(s.dir, initdb, "-D", data, "-U", "bench", "-A", "trust", "--no-sync").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	addrs, err := freeAddresses(1)
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(addrs[0])
	if err != nil {
		return err
	}
	s.url = fmt.Sprintf("postgres://bench@%s/postgres?sslmode=disable", addrs[0])
	s.server, err = s.env.start(who.command(s.dir, server, "-D", data, "-h", host, "-p", port, "-k", s.dir,
		"-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "log_min_messages=panic"))
	if err != nil {
		return err
	}
	return poll(ctx, s.prepare)
}

func (s *Postgres) makeDir(who user) (err error) {
	if s.dir, err = os.MkdirTemp(s.env.Dir, "bench-postgres-"); err != nil {
		return err
	}
	if who.attr == nil {
		return nil
	}
	return os.Chown(s.dir, int(who.attr.Credential.Uid), int(who.attr.Credential.Gid))
}

// prepare makes the sequence and the tables.
func (s *Postgres) prepare(ctx context.Context) error {
	pool, err := s.pool(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	_, err = pool.Exec(ctx, postgresSchema)
	return err
}

func (s *Postgres) pool(ctx context.Context, conns int) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(s.url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(min(conns, postgresConns))
	return pgxpool.NewWithConfig(ctx, cfg)
}

// Measure lets the callers share a pool of connections.
func (s *Postgres) Measure(ctx context.Context, plan load.Plan, p Point) (bench.Report, error) {
	pool, err := s.pool(ctx, p.Callers)
	if err != nil {
		return bench.Report{}, err
	}
	defer pool.Close()
	call := func(ctx context.Context) (int64, error) { return s.call(ctx, pool, p.Op) }
	return load.Run(ctx, plan, p.Op, repeated(call, p.Callers))
}

func (s *Postgres) call(ctx context.Context, pool *pgxpool.Pool, op string) (id int64, err error) {
	var args []any
	switch op {
	case lockedWork:
		return lockAndWork(ctx, pool)
	case numberedKey:
		args = append(args, fmt.Sprintf("document-%d", s.keys.Add(1)))
	}
	err = pool.QueryRow(ctx, postgresOps[op], args...).Scan(&id)
	return id, err
}

// Stop ends the server; SIGINT closes its connections first.
func (s *Postgres) Stop() error {
	var err error
	if s.server != nil {
		err = s.server.end(syscall.SIGINT)
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
