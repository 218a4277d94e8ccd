package layering

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"testing"
)

// Explored worlds and simulated nodes obey one relation: both import it, and it is in no
// other package.
func TestOneModel(t *testing.T) {
	users := map[string]bool{}
	walk(t, func(file string) {
		if path.Ext(file) != ".go" {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(text, []byte("\""+module+"/test/model\"")) {
			users[path.Dir(file)] = true
		}
	})
	for _, want := range []string{"test/exploration", "test/simulation"} {
		if !users[want] {
			t.Errorf("%s does not import test/model", want)
		}
		delete(users, want)
	}
	for other := range users {
		t.Errorf("%s imports test/model, which is for tests", other)
	}
}
