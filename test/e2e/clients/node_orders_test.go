package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/internal/freeport"
	"github.com/idnode/idnode/test/e2e/harness"
)

// ordersService is a program of examples that takes orders, which may be killed and started again.
type ordersService struct {
	folder, address string
	command, env    []string
	cmd             *exec.Cmd
}

// startOrders installs the client beside the program, and starts it.
func startOrders(t *testing.T, c *harness.Cluster) *ordersService {
	t.Helper()
	languages[1].need(t)
	client, err := filepath.Abs(filepath.Join(folder, "node"))
	if err != nil {
		t.Fatal(err)
	}
	s := &ordersService{folder: t.TempDir(), command: []string{"node", "orders.js"}}
	if err := os.CopyFS(s.folder, os.DirFS("../../../examples/node-orders")); err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(s.folder, "node_modules")
	if err := os.MkdirAll(modules, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(client, filepath.Join(modules, "idnode")); err != nil {
		t.Fatal(err)
	}
	s.serve(t, c)
	return s
}

// serve starts the program with the nodes of a cluster. It ends with the test.
func (s *ordersService) serve(t *testing.T, c *harness.Cluster) {
	t.Helper()
	s.address = freeport.For(t)
	var endpoints []string
	for _, n := range c.Nodes {
		endpoints = append(endpoints, n.HTTP)
	}
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.env = append(os.Environ(), "IDNODE_HTTP_ENDPOINTS="+strings.Join(endpoints, ","), "PORT="+port)
	s.start(t)
	t.Cleanup(func() { s.end(t, syscall.SIGKILL) })
}

// start starts the program, and waits until it says that it is ready.
func (s *ordersService) start(t *testing.T) {
	t.Helper()
	s.cmd = exec.Command(s.command[0], s.command[1:]...)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = s.folder, s.env, os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(answerWithin, func() { _ = s.cmd.Process.Kill() })
	defer hung.Stop()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the service said %q: %v", line, err)
	}
}

// end ends the program with a signal.
func (s *ordersService) end(t *testing.T, signal os.Signal) {
	t.Helper()
	_ = s.cmd.Process.Signal(signal)
	_ = s.cmd.Wait() // It ends by a signal.
}

// order is one that the service has taken.
type order struct{ Key, Customer, Number string }

// place places an order, again and again until the service takes it.
func (s *ordersService) place(key string) (order, error) {
	var last error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		var got order
		if last = s.call(http.MethodPost, key, &got); last == nil {
			return got, nil
		}
	}
	return order{}, last
}

func (s *ordersService) call(method, key string, into any) error {
	request, err := http.NewRequest(method, "http://"+s.address+"/orders", strings.NewReader(`{"customer":"Oren"}`))
	if err != nil {
		return err
	}
	request.Header.Set("Idempotency-Key", key)
	answer, err := (&http.Client{Timeout: answerWithin}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %w", answer.Status, text, err)
	}
	return json.Unmarshal(text, into)
}

// TestOrdersOfNode kills the leader, and the service, while orders are placed: each has a number of its
// own, and none is missing.
func TestOrdersOfNode(t *testing.T) {
	c := harness.StartCluster(t, harness.Config{})
	s := startOrders(t, c)
	s.placeWhileKilled(t, c)
	s.placeByAnyKey(t, c, "node-orders")
	s.end(t, syscall.SIGTERM)
	if !s.cmd.ProcessState.Success() {
		t.Errorf("the service ended with %v", s.cmd.ProcessState)
	}
}

func (s *ordersService) placeWhileKilled(t *testing.T, c *harness.Cluster) {
	t.Helper()
	const placed, callers = 400, 8
	var next, done atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for i := next.Add(1); i <= placed; i = next.Add(1) {
				key := "cart-" + strconv.FormatInt(i, 10)
				if got, err := s.place(key); err != nil || got.Key != key || got.Number == "" {
					t.Errorf("%s was placed as %+v: %v", key, got, err)
				}
				done.Add(1)
			}
		})
	}
	harness.Eventually(t, time.Minute, "orders", func(context.Context) error { return after(&done, placed/4) })
	leader := c.Leader(t)
	leader.Process.Kill()
	harness.Eventually(t, time.Minute, "orders", func(context.Context) error { return after(&done, placed/2) })
	s.end(t, syscall.SIGKILL)
	s.start(t)
	leader.Start(t)
	all.Wait()
	var stored []order
	if err := s.call(http.MethodGet, "", &stored); err != nil {
		t.Fatal(err)
	}
	var numbers []int
	for _, o := range stored {
		n, err := strconv.Atoi(o.Number)
		if err != nil {
			t.Errorf("%+v: %v", o, err)
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if n != i+1 {
			t.Fatalf("number %d comes after %d", n, i)
		}
	}
	if len(numbers) != placed {
		t.Errorf("%d orders are stored of %d", len(numbers), placed)
	}
}

func after(done *atomic.Int64, n int64) error {
	if got := done.Load(); got < n {
		return fmt.Errorf("%d of %d", got, n)
	}
	return nil
}
