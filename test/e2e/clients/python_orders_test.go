package clients

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
)

// TestOrdersOfPython kills the leader, and the service, while orders are placed: each has a number of its own, and none is
// missing.
func TestOrdersOfPython(t *testing.T) {
	for program, needs := range map[string]string{"fastapi-orders": "fastapi, uvicorn, aiosqlite, sqlalchemy", "django-orders": "django"} {
		t.Run(program, func(t *testing.T) {
			languages[0].need(t)
			if err := exec.Command(debianPython, "-c", "import "+needs).Run(); err != nil {
				t.Skip("there is no " + needs)
			}
			client, err := filepath.Abs(filepath.Join(folder, "python"))
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("PYTHONPATH", client)
			s := &ordersService{folder: t.TempDir(), command: []string{debianPython, "orders.py"}}
			if err := os.CopyFS(s.folder, os.DirFS(filepath.Join("../../../examples", program))); err != nil {
				t.Fatal(err)
			}
			c := harness.StartCluster(t, harness.Config{})
			s.serve(t, c)
			s.placeWhileKilled(t, c)
			s.placeByAnyKey(t, c, program)
			s.end(t, syscall.SIGTERM)
		})
	}
}

// placeByAnyKey places orders by keys that are no request ids of a caller, or those of other calls. Wrong keys store nothing. An order
// that gets no number, for another call has had its request id, keeps the service from nothing: it answers that, and starts.
func (s *ordersService) placeByAnyKey(t *testing.T, c *harness.Cluster, program string) {
	t.Helper()
	c.WaitReady(t)
	for _, id := range []string{"used", program + "-taken"} {
		body := fmt.Sprintf(`{"name":"elsewhere","count":1,"requestId":{"id":%q}}`, id)
		answer, err := http.Post("http://"+c.Nodes[0].HTTP+"/idnode.v1.IdsService/NextIdentity", "application/json", strings.NewReader(body))
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatal(answer, err)
		}
		answer.Body.Close()
	}
	var got order
	for _, key := range []string{"block.1", "used", strings.Repeat("x", 48)} {
		if err := s.call(http.MethodPost, key, &got); err != nil || got.Number == "" {
			t.Errorf("%s was placed as %+v: %v", key, got, err)
		}
	}
	refused := map[string]string{"": "400", "cart 17": "400", "caf\u00e9": "400", strings.Repeat("x", 49): "400", "taken": "500"}
	for key, status := range refused {
		if err := s.call(http.MethodPost, key, &got); err == nil || !strings.HasPrefix(err.Error(), status) {
			t.Errorf("%q was answered with %v, want %s", key, err, status)
		}
	}
	s.end(t, syscall.SIGTERM)
	s.start(t)
	var stored []order
	harness.Eventually(t, time.Minute, "orders", func(context.Context) error { return s.call(http.MethodGet, "", &stored) })
	for _, o := range stored {
		wrong := len(o.Key) > 48 || strings.ContainsFunc(o.Key, func(r rune) bool { return r <= ' ' || r > '~' })
		if wrong || (o.Number == "") != (o.Key == "taken") {
			t.Errorf("stored is %+v", o)
		}
	}
}
