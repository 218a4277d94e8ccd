package layering

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// clientModules are the modules that an application gets with the client.
var clientModules = []string{
	"github.com/gertd/go-pluralize", "github.com/idnode/idnode", "golang.org/x/net", "golang.org/x/sys", "golang.org/x/text",
	"google.golang.org/genproto/googleapis/rpc", "google.golang.org/grpc", "google.golang.org/protobuf",
}

// TestTheClientNeedsFewModules: none of Raft, storage, metrics or the command line. So the client
// needs no module of its own: Go leaves out of an application's go.mod what no package of it needs.
func TestTheClientNeedsFewModules(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./client")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := strings.Fields(string(out))
	slices.Sort(modules)
	if modules = slices.Compact(modules); !slices.Equal(modules, clientModules) {
		t.Errorf("the client needs %q", modules)
	}
}
