package clients

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/client"
	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// goOrder is an order of examples/go-orders.
type goOrder struct {
	ID, Ref, Text string
	Number        int64
}

// goService is the program of examples/go-orders.
type goService struct {
	url string
	cmd *exec.Cmd
}

func startGoService(t *testing.T, endpoints []string) *goService {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(dir, "go-orders"), ".")
	build.Dir = "../../../examples/go-orders"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := &goService{cmd: exec.Command(filepath.Join(dir, "go-orders"), "-listen", "127.0.0.1:0", "-db", filepath.Join(dir, "orders.db"))}
	s.cmd.Env = append(os.Environ(), "IDNODE_ENDPOINTS="+strings.Join(endpoints, ","))
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = s.cmd.Process.Kill(), s.cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	s.url = strings.TrimSpace(line)
	return s
}

// ask makes a request for an order; a body makes it a POST.
func (s *goService) ask(path, body string) (code int, o goOrder, err error) {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, o, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, o, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode < 300 {
		err = json.NewDecoder(bytes.NewReader(text)).Decode(&o)
	}
	return res.StatusCode, o, err
}

// TestGoOrders: eight callers order while the leader is killed. No request fails, no order number comes twice, and
// a ref that is sent again gets no second order.
func TestGoOrders(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{})
	var endpoints []string
	for _, n := range c.Nodes {
		endpoints = append(endpoints, n.GRPC)
	}
	s := startGoService(t, endpoints)
	const each = 40
	orders := make(chan goOrder, 8*each)
	halves := make(chan bool, 8)
	var callers sync.WaitGroup
	for caller := range 8 {
		callers.Go(func() {
			for i := range each {
				body := fmt.Sprintf(`{"ref":"basket-%d-%d","text":"pears","id":"mine","number":7}`, caller, i)
				code, o, err := s.ask("/orders", body)
				if err != nil || code != http.StatusCreated {
					t.Errorf("the answer to %s is %d: %v", body, code, err)
				}
				orders <- o
				if i == each/2 {
					halves <- true
				}
			}
		})
	}
	<-halves
	leader := c.Leader(t)
	leader.Process.Kill()
	callers.Wait()
	close(orders)
	seen := make(map[any]bool)
	for o := range orders {
		if seen[o.Number] || seen[o.ID] || o.Number == 0 || !strings.HasPrefix(o.ID, "orders/") {
			t.Errorf("a second, or none: %+v", o)
		}
		seen[o.Number], seen[o.ID] = true, true
		if code, stored, err := s.ask("/orders/"+o.Ref, ""); err != nil || code != http.StatusOK || stored != o {
			t.Errorf("stored is %+v in place of %+v: %d, %v", stored, o, code, err)
		}
	}
	if code, _, err := s.ask("/orders", `{"ref":"basket-0-0","text":"pears"}`); err != nil || code != http.StatusConflict {
		t.Errorf("a second order of a ref: %d, %v", code, err)
	}
	leader.Start(t)
	c.WaitReady(t)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	hung := time.AfterFunc(answerWithin, func() { _ = s.cmd.Process.Kill() })
	defer hung.Stop()
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("the service ended with %v", err)
	}
}

// TestGoOrdersTakenNumbers: a number that an order has already is not said to be an order of the ref.
func TestGoOrdersTakenNumbers(t *testing.T) {
	tier.Long(t)
	endpoints := []string{harness.StartCluster(t, harness.Config{Size: 1, Direct: true}).Nodes[0].GRPC}
	c, err := client.New(t.Context(), client.Config{Endpoints: endpoints})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	s := startGoService(t, endpoints)
	for i, want := range []struct {
		ref         string
		post, found int
	}{
		{"first", http.StatusCreated, http.StatusOK},
		{"second", http.StatusServiceUnavailable, http.StatusNotFound},
		{"second", http.StatusCreated, http.StatusOK},
		{"second", http.StatusConflict, http.StatusOK},
	} {
		if i == 1 { // The numbers begin at 1 again.
			if _, err := c.Identity("orders").Delete(t.Context(), client.WithForget()); err != nil {
				t.Fatal(err)
			}
		}
		post, _, err := s.ask("/orders", fmt.Sprintf(`{"ref":%q,"text":"pears"}`, want.ref))
		found, _, failed := s.ask("/orders/"+want.ref, "")
		if err != nil || failed != nil || post != want.post || found != want.found {
			t.Errorf("%d: the answers are %d and %d in place of %+v: %v, %v", i, post, found, want, err, failed)
		}
	}
}
