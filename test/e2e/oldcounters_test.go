package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/internal/freeport"
	"github.com/idnode/idnode/test/e2e/harness"
)

// oldCounters are servers whose counters are moved away from.
type oldCounters struct {
	// redisCLI is the path of redis-cli, and redis the arguments by which it finds its server.
	redisCLI string
	redis    []string
}

// startOldCounters starts a PostgreSQL and a Redis, which the shell's commands find.
func startOldCounters(t *testing.T, s *shell) *oldCounters {
	t.Helper()
	startPostgres(t, s)
	host, port := freeHostPort(t)
	inBackground(t, exec.Command("redis-server", "--bind", host, "--port", port, "--dir", t.TempDir(), "--save", ""), syscall.SIGTERM)
	cli, err := exec.LookPath("redis-cli")
	if err != nil {
		t.Fatal(err)
	}
	old := &oldCounters{redisCLI: cli, redis: []string{"-h", host, "-p", port}}
	s.eventually(t, cli, append(old.redis, "ping")...)
	return old
}

// startPostgres starts a server with a new database. It is not durable.
func startPostgres(t *testing.T, s *shell) {
	t.Helper()
	initdb, server := postgresProgram(t, "initdb"), postgresProgram(t, "postgres")
	dir, err := os.MkdirTemp("", "idnode-postgres-") // One of t.TempDir can be entered by this user alone.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	who := unprivileged(t, dir)
	cmd := exec.Command(initdb, "-D", filepath.Join(dir, "data"), "-U", "test", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
	cmd.Dir, cmd.SysProcAttr = dir, who()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	host, port := freeHostPort(t)
	cmd = exec.Command(server, "-D", filepath.Join(dir, "data"), "-h", host, "-p", port, "-k", "", "-c", "fsync=off")
	cmd.Dir, cmd.SysProcAttr = dir, who()
	inBackground(t, cmd, syscall.SIGQUIT)
	s.env = slices.DeleteFunc(s.env, func(kv string) bool { return strings.HasPrefix(kv, "PG") })
	s.env = append(s.env, "PGHOST="+host, "PGPORT="+port, "PGUSER=test", "PSQLRC=/dev/null")
	s.eventually(t, "psql", "-d", "postgres", "-c", "select 1")
}

// postgresProgram finds a program of the newest PostgreSQL. Debian keeps them off the path.
func postgresProgram(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		t.Skipf("the commands need PostgreSQL's %s, which is not here", name)
	}
	return slices.Max(found)
}

// unprivileged returns how to run a program as this user, or as another one, who gets the
// folder, if this one is root: PostgreSQL refuses that.
func unprivileged(t *testing.T, dir string) func() *syscall.SysProcAttr {
	t.Helper()
	if os.Getuid() != 0 {
		return func() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Skip("PostgreSQL does not run as root, and there is no other user")
	}
	uid, _ := strconv.Atoi(u.Uid) // Linux has numbers there.
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return func() *syscall.SysProcAttr {
		return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
}

func freeHostPort(t *testing.T) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(freeport.For(t))
	if err != nil {
		t.Fatal(err)
	}
	return host, port
}

// inBackground starts a program, which gets the signal after the test.
func inBackground(t *testing.T, cmd *exec.Cmd, end syscall.Signal) {
	t.Helper()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, end
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(end)
		hung := time.AfterFunc(15*time.Second, func() { _ = cmd.Process.Kill() })
		defer hung.Stop()
		_ = cmd.Wait() // It ends by a signal.
	})
}

// startDev starts the cluster that the page practises with.
func (s *shell) startDev(t *testing.T) {
	t.Helper()
	base, err := freeport.Base(30)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(s.bin, "idnode"), "dev", "--base-port", strconv.Itoa(base))
	cmd.Env = append(s.env, "TMPDIR="+t.TempDir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	inBackground(t, cmd, syscall.SIGTERM)
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "ready") {
	}
	s.env = append(s.env, fmt.Sprintf("IDNODE_ENDPOINTS=127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", base, base+10, base+20))
}

// answersWithin bounds what takes a moment: a busy machine may take many.
const answersWithin = 2 * time.Minute

// eventually waits until a command succeeds.
func (s *shell) eventually(t *testing.T, program string, args ...string) {
	t.Helper()
	harness.Eventually(t, answersWithin, program, func(ctx context.Context) error {
		return s.try(ctx, program, args...)
	})
}

// do runs a command once.
func (s *shell) do(t *testing.T, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), answersWithin)
	defer cancel()
	if err := s.try(ctx, program, args...); err != nil {
		t.Fatalf("%s: %v", program, err)
	}
}

func (s *shell) try(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// tables are those of the application: of a sequence in use, of which each session holds
// numbers ahead, of one that was never used, of one at its end, and of one that stays; and blocks of 20.
const tables = `
create table invoices (id serial primary key);
alter sequence invoices_id_seq cache 20;
select setval('invoices_id_seq', 1991);
create table customers (id bigint generated always as identity);
create table labels (id smallserial primary key);
select setval('labels_id_seq', 32767);
create sequence countdown increment -1;
create table hilo (tag text primary key, blocks bigint);
insert into hilo values ('companies', 25);
`

// begin makes the application's databases, with counters in use: one of PostgreSQL, and
// one of Redis, which has numbers for names.
func (old *oldCounters) begin(t *testing.T, s *shell, database string, number int) {
	t.Helper()
	s.do(t, "psql", "-d", "postgres", "-c", "create database "+database)
	s.do(t, "psql", "-d", database, "-v", "ON_ERROR_STOP=1", "-c", tables)
	// redis-cli finds no server by the environment.
	script := fmt.Sprintf("#!/bin/sh\nexec %s %s -n %d \"$@\"\n", old.redisCLI, strings.Join(old.redis, " "), number)
	if err := os.WriteFile(filepath.Join(s.bin, "redis-cli"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	s.do(t, filepath.Join(s.bin, "redis-cli"), "set", "bills", "4711")
}

// callers take numbers of invoices and of bills, one after the other in a session each,
// until the function is called, which returns what they got.
func (old *oldCounters) callers(t *testing.T, s *shell, database string, number int) (taken func() map[string][]string) {
	t.Helper()
	redis := append(slices.Clone(old.redis), "-n", strconv.Itoa(number))
	invoices := s.caller(t, "select nextval('invoices_id_seq');", "psql", "-d", database, "-q", "-t", "-A")
	bills := s.caller(t, "incr bills", old.redisCLI, redis...)
	return func() map[string][]string {
		return map[string][]string{"invoices": invoices(), "bills": bills()}
	}
}

var number = regexp.MustCompile(`^\d+$`)

// caller gives a program the same request again and again, each when the one before was
// answered with a line. It has got a number when caller returns.
func (s *shell) caller(t *testing.T, request, program string, args ...string) (taken func() []string) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = s.env
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout // An error is an answer too.
	inBackground(t, cmd, syscall.SIGKILL)
	first, stop, done := make(chan struct{}), make(chan struct{}), make(chan []string, 1)
	go func() { done <- ask(in, out, request, first, stop) }()
	select {
	case <-first:
	case <-time.After(answersWithin):
		t.Fatalf("%s does not answer", program)
	}
	return func() []string { close(stop); return <-done }
}

// ask closes first when it has got a number, and returns all numbers after stop.
func ask(in io.Writer, out io.Reader, request string, first chan<- struct{}, stop <-chan struct{}) (numbers []string) {
	lines := bufio.NewScanner(out)
	pace := time.NewTicker(10 * time.Millisecond) // The commands need the processors too.
	defer pace.Stop()
	for {
		select {
		case <-stop:
			return numbers
		case <-pace.C:
		}
		if _, err := io.WriteString(in, request+"\n"); err != nil || !lines.Scan() {
			return numbers
		}
		if number.MatchString(lines.Text()) {
			if numbers = append(numbers, lines.Text()); len(numbers) == 1 {
				close(first)
			}
		}
	}
}
