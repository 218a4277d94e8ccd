package clients

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

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
			s.end(t, syscall.SIGTERM)
		})
	}
}
