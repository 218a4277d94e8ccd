package harness

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/freeport"
)

const (
	// composeStart bounds what needs an engine that is up and idle; composeLimit
	// bounds one command of it, a build included.
	composeStart = 10 * time.Second
	// makeLimit bounds a verb of deploy/compose, which waits up to a minute for each node.
	composeLimit = 60 * time.Second
	makeLimit    = 6 * time.Minute
)

// Compose is the cluster of deploy/docker-compose.yml in containers, under a
// project name of its own, with mutual TLS. deploy/compose starts it.
type Compose struct {
	Containers []*Container
	// Certs is the folder of its certificates.
	Certs      string
	project    string
	images     []string
	repository string
	env        []string
}

// Container is one node of it. The embedded Node reaches it from the host, as
// long as its port is published; Exec asks from inside.
type Container struct {
	*Node
	// ID is the container's, Service its name in the compose file and on the
	// network.
	ID, Service string
	compose     *Compose
}

// StartCompose loads the image as `make image` does, starts the cluster, and
// waits until every node is ready. When the test ends it removes containers,
// network, volumes and image. It skips the test where there is no Docker engine
// or no compose.
func StartCompose(t testing.TB) *Compose {
	t.Helper()
	needCompose(t)
	dir := t.TempDir()
	name := fmt.Sprintf("idnode-e2e-%d-%d", os.Getpid(), time.Now().UnixNano())
	c := &Compose{Certs: filepath.Join(dir, "certs"), project: name, repository: repository(t)}
	settings := []string{
		"DEPLOY_PROJECT=" + name, "DEPLOY_IMAGE=" + name + ":local", "DEPLOY_CERTS=" + c.Certs, "DEPLOY_PROGRAM=" + Binary(t),
	}
	for _, tag := range []string{"A", "B", "C"} {
		n := &Node{Tag: tag, GRPC: freeport.For(t), HTTP: freeport.For(t)}
		settings = append(settings, "DEPLOY_PORT_"+tag+"="+portOf(n.GRPC), "DEPLOY_HTTP_"+tag+"="+portOf(n.HTTP))
		c.Containers = append(c.Containers, &Container{Node: n, Service: "idnode-" + strings.ToLower(tag), compose: c})
	}
	file := filepath.Join(dir, "env")
	if err := os.WriteFile(file, []byte(strings.Join(settings, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.env = append(cleanEnvironment(), "DEPLOY_ENV="+file)
	t.Cleanup(func() { c.remove(t) })
	c.LoadImage(t, "local")
	c.Run(t, "up")
	c.Look(t)
	for _, n := range c.Containers {
		n.Client = Dial(t, n.GRPC, c.Certs)
		n.WaitHealthy(t)
	}
	return c
}

// Look finds out which containers the nodes have now.
func (c *Compose) Look(t testing.TB) {
	t.Helper()
	for _, n := range c.Containers {
		n.ID = strings.TrimSpace(c.Run(t, "ps", "-q", n.Service))
	}
}

func portOf(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// needCompose skips a test where there is no engine, or no compose.
func needCompose(t testing.TB) {
	t.Helper()
	works := func(command ...string) error {
		_, err := output(nil, command...)
		return err
	}
	if err := works("docker", "version", "--format", "{{.Server.Version}}"); err != nil {
		t.Skipf("no Docker engine: %v", err)
	}
	if err := works("docker", "compose", "version"); err == nil {
		return
	}
	if err := works("docker-compose", "version"); err != nil {
		t.Skipf("neither docker compose nor docker-compose: %v", err)
	}
}

// repository is the folder of the module.
func repository(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/idnode/idnode").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// Operator runs a command against a node from the host, with the administrator's
// certificate, and returns what it printed.
func (c *Compose) Operator(t testing.TB, n *Container, args ...string) string {
	t.Helper()
	file := func(name string) string { return filepath.Join(c.Certs, name) }
	args = append(args, "--endpoint", n.GRPC, "--timeout", "20s", "--tls-ca", file("ca.crt"), "--tls-cert", file("client.crt"),
		"--tls-key", file("client.key"))
	out, err := output(c.env, append([]string{Binary(t)}, args...)...)
	if err != nil {
		t.Fatalf("idnode %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(out)
}

// Lose drops a node's container and its volume, as a lost disk does.
func (n *Container) Lose(t testing.TB) {
	t.Helper()
	n.compose.docker(t, "rm", "--force", n.ID)
	n.compose.docker(t, "volume", "rm", n.compose.project+"_"+strings.TrimPrefix(n.Service, "idnode-"))
}

// LoadImage gives the engine the program under test as an image with a tag, and returns its name.
func (c *Compose) LoadImage(t testing.TB, tag string) string {
	t.Helper()
	return c.LoadProgram(t, Binary(t), tag)
}

// LoadProgram does so with another program, by its path or its name in the repository.
func (c *Compose) LoadProgram(t testing.TB, program, tag string) string {
	t.Helper()
	name := c.project + ":" + tag
	c.images = append(c.images, name)
	file := filepath.Join(t.TempDir(), "image.tar")
	build := exec.Command(filepath.Join(c.repository, "deploy", "image"), program, name, runtime.GOARCH)
	build.Dir = c.repository
	image, err := build.Output()
	if err := errors.Join(err, os.WriteFile(file, image, 0o600)); err != nil {
		t.Fatal(err)
	}
	c.docker(t, "load", "-q", "-i", file)
	return name
}

// Make does what an operator does with one of the verbs of the Makefile, but builds nothing.
func (c *Compose) Make(t testing.TB, args ...string) (string, error) {
	t.Helper()
	begin := time.Now()
	out, err := outputWithin(makeLimit, c.env, append([]string{"make", "-C", c.repository, "-o", "build"}, args...)...)
	t.Logf("make %s: %s", strings.Join(args, " "), time.Since(begin).Round(time.Second))
	return out, err
}

// KillMake does as Make until the verb has printed a line that begins so, and kills it then.
func (c *Compose) KillMake(t testing.TB, at string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), makeLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", append([]string{"-C", c.repository, "-o", "build"}, args...)...)
	cmd.Env, cmd.SysProcAttr = c.env, &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	printed := bufio.NewScanner(out)
	for printed.Scan() && !strings.HasPrefix(printed.Text(), at) {
	}
	reached := ctx.Err() == nil && strings.HasPrefix(printed.Text(), at)
	cancel()
	if err := cmd.Wait(); err == nil || !reached {
		t.Fatalf("make %s was not killed at %q: %v", strings.Join(args, " "), at, err)
	}
}

// remove removes all that was made under the project's name. It goes on after
// an error, so that as little as possible is left.
func (c *Compose) remove(t testing.TB) {
	if t.Failed() {
		if out, err := c.run("logs", "--no-color", "--tail", "60"); err == nil {
			t.Log(out)
		}
	}
	if out, err := c.run("down", "--volumes", "--remove-orphans", "--timeout", "2"); err != nil {
		t.Errorf("removing the containers: %v\n%s", err, out)
	}
	if out, err := output(c.env, append([]string{"docker", "rmi", "--force"}, c.images...)...); err != nil {
		t.Errorf("removing the image: %v\n%s", err, out)
	}
}

// run runs a command of compose and returns what it printed.
func (c *Compose) run(args ...string) (string, error) {
	return outputWithin(makeLimit, c.env, append([]string{filepath.Join(c.repository, "deploy", "compose")}, args...)...)
}

// Run runs a command of compose, which must succeed, and returns what it printed.
func (c *Compose) Run(t testing.TB, args ...string) string {
	t.Helper()
	out, err := c.run(args...)
	if err != nil {
		t.Fatalf("compose %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (c *Compose) docker(t testing.TB, args ...string) string {
	t.Helper()
	out, err := output(c.env, append([]string{"docker"}, args...)...)
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// output runs a command in bounded time. The error has what it said on its
// standard error.
func output(env []string, command ...string) (string, error) {
	return outputWithin(composeLimit, env, command...)
}

func outputWithin(limit time.Duration, env []string, command ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Env, cmd.WaitDelay = env, time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return string(out), err
}

// Exec runs the program inside the container and returns what it printed and its
// exit code.
func (n *Container) Exec(t testing.TB, args ...string) (out, stderr string, code int) {
	t.Helper()
	out, err := output(n.compose.env, append([]string{"docker", "exec", n.ID, "/idnode"}, args...)...)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out, "", 0
	case errors.As(err, &exit):
		return out, err.Error(), exit.ExitCode()
	}
	t.Fatalf("docker exec in %s: %v", n.Service, err)
	return "", "", 0
}

// WaitHealthy waits until the node, asked from inside, says that it serves.
func (n *Container) WaitHealthy(t testing.TB) {
	t.Helper()
	Eventually(t, 30*time.Second, n.Service+" is healthy", func(context.Context) error {
		if out, stderr, code := n.Exec(t, "health", "--timeout", "2s"); code != 0 {
			return fmt.Errorf("exit code %d: %s%s", code, out, stderr)
		}
		return nil
	})
}

// Status is the node's own view, asked from inside.
func (n *Container) Status(t testing.TB) (*idnodev1.GetStatusResponse, error) {
	t.Helper()
	out, stderr, code := n.Exec(t, "cluster", "status", "-o", "json", "--timeout", "2s")
	if code != 0 {
		return nil, fmt.Errorf("exit code %d: %s", code, stderr)
	}
	s := &idnodev1.GetStatusResponse{}
	return s, protojson.Unmarshal([]byte(out), s)
}

// Leader waits until the containers agree on a leader among them and returns it
// and the others.
func (c *Compose) Leader(t testing.TB, among ...*Container) (leader *Container, others []*Container) {
	t.Helper()
	Eventually(t, 20*time.Second, "a leader", func(context.Context) error {
		leader, others = nil, nil
		tags := make(map[string]bool)
		for _, n := range among {
			s, err := n.Status(t)
			if err != nil {
				return err
			}
			tags[s.LeaderTag] = true
		}
		for _, n := range among {
			if tags[n.Tag] {
				leader = n
			} else {
				others = append(others, n)
			}
		}
		if len(tags) != 1 || leader == nil {
			return fmt.Errorf("leaders: %v", tags)
		}
		return nil
	})
	return leader, others
}

// Agree waits until all containers have the same state hash at the same index.
func (c *Compose) Agree(t testing.TB) {
	t.Helper()
	Eventually(t, 20*time.Second, "equal state in all containers", func(context.Context) error {
		seen := make(map[string][]string)
		for _, n := range c.Containers {
			s, err := n.Status(t)
			if err != nil {
				return err
			}
			state := fmt.Sprintf("index %d hash %016x format %d", s.AppliedIndex, s.StateHash, s.LogFormat)
			seen[state] = append(seen[state], n.Tag)
		}
		if len(seen) != 1 {
			return fmt.Errorf("states: %v", seen)
		}
		return nil
	})
}

// MostDown returns how many containers were down at once since then, stopped or gone.
func (c *Compose) MostDown(t testing.TB, since time.Time) (most int) {
	t.Helper()
	events := c.docker(t, "events", "--since", since.Format(time.RFC3339Nano), "--until", time.Now().Format(time.RFC3339Nano),
		"--filter", "label=com.docker.compose.project="+c.project, "--filter", "event=start", "--filter", "event=die",
		"--format", `{{.Action}} {{index .Actor.Attributes "com.docker.compose.service"}}`)
	down := map[string]bool{}
	for event := range strings.Lines(events) {
		action, service, _ := strings.Cut(strings.TrimSpace(event), " ")
		if down[service] = true; action == "start" {
			delete(down, service)
		}
		most = max(most, len(down))
	}
	return most
}

// network is the name of the project's network.
func (c *Compose) network() string { return c.project + "_default" }

// Disconnect takes the container off the network.
func (n *Container) Disconnect(t testing.TB) {
	t.Helper()
	n.compose.docker(t, "network", "disconnect", n.compose.network(), n.ID)
}

// Connect puts the container back on the network, under its name.
func (n *Container) Connect(t testing.TB) {
	t.Helper()
	n.compose.docker(t, "network", "connect", "--alias", n.Service, n.compose.network(), n.ID)
}

// Address is the container's address on the network.
func (n *Container) Address(t testing.TB) netip.Addr {
	t.Helper()
	const format = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
	addr, err := netip.ParseAddr(strings.TrimSpace(n.compose.docker(t, "inspect", "--format", format, n.ID)))
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// Kill ends the container's process as a crash would; it stays down.
func (n *Container) Kill(t testing.TB) {
	t.Helper()
	n.compose.docker(t, "kill", "--signal", "KILL", n.ID)
}

// KillNow does so, and returns as soon as the process has ended. The engine still removes the
// container from the network then; killed says when it may be started again.
func (n *Container) KillNow(t testing.TB) (ended time.Time, killed <-chan error) {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(n.compose.docker(t, "inspect", "--format", "{{.State.Pid}}", n.ID)))
	if err != nil {
		t.Fatal(err)
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(process)
	done := make(chan error, 1)
	go func() {
		_, err := output(n.compose.env, "docker", "kill", n.ID)
		done <- err
	}()
	// A process that has ended can be read. A signal ends the wait before that.
	wait := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
	err = unix.EINTR
	for errors.Is(err, unix.EINTR) {
		_, err = unix.Poll(wait, int(composeStart.Milliseconds()))
	}
	if err != nil || wait[0].Revents == 0 {
		t.Fatalf("%s did not end: %v", n.Service, err)
	}
	return time.Now(), done
}

// StartAgain starts a container that was killed.
func (n *Container) StartAgain(t testing.TB) {
	t.Helper()
	n.compose.docker(t, "start", n.ID)
}

// StaysDown waits until the node has said so often that it is down for good, and checks
// that its process is there and was not started by the engine.
func (n *Container) StaysDown(t testing.TB, times int) {
	t.Helper()
	Eventually(t, 20*time.Second, n.Service+" is down for good", func(context.Context) error {
		logs, err := exec.Command("docker", "logs", n.ID).CombinedOutput()
		if said := strings.Count(string(logs), "stays down until it is stopped"); err != nil || said != times {
			return fmt.Errorf("it said so %d times: %v\n%s", said, err, logs[max(0, len(logs)-1000):])
		}
		return nil
	})
	if state := strings.TrimSpace(n.compose.docker(t, "inspect", "--format", "{{.State.Running}} {{.RestartCount}}",
		n.ID)); state != "true 0" {
		t.Errorf("%s runs, and was started again: %s", n.Service, state)
	}
}
