package layering

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// callers are the folders of what calls a cluster.
var callers = []string{"client", "cmd/idnode", "examples", "internal/bench", "test", "transfer"}

// TestServersAreNoClients: a server has the text of ids, the messages and the windows of Snowflake ids
// from the client's module, and nothing that calls a cluster.
func TestServersAreNoClients(t *testing.T) {
	for _, p := range packages(t) {
		if slices.ContainsFunc(callers, func(c string) bool { return below(p.folder, c) }) {
			continue
		}
		for _, client := range []string{module + "/client", module + "/client/generator"} {
			if file := p.imports[client]; file != "" {
				t.Errorf("%s imports %s", file, client)
			}
		}
	}
}

// clientModules are the modules with packages that the client needs: docs/start/go.md counts them.
var clientModules = []string{
	"github.com/gertd/go-pluralize", module + "/client", "golang.org/x/net", "golang.org/x/sys", "golang.org/x/text",
	"google.golang.org/genproto/googleapis/rpc", "google.golang.org/grpc", "google.golang.org/protobuf",
}

// TestTheClientNeedsFewModules: none of Raft, storage, metrics or the command line.
func TestTheClientNeedsFewModules(t *testing.T) {
	found := list(t, "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", ".")
	slices.Sort(found)
	if found = slices.Compact(found); !slices.Equal(found, clientModules) {
		t.Errorf("the client needs %q", found)
	}
}

// serversModules are modules that only the servers need, as is the program's own. (gRPC's graph has
// OpenTelemetry's SDK, of which gRPC itself needs nothing.)
var serversModules = []string{
	"github.com/HdrHistogram", "github.com/hashicorp", "github.com/prometheus", "github.com/spf13", "github.com/tidwall", "go.etcd.io",
	"go.opentelemetry.io/contrib/instrumentation", "go.opentelemetry.io/otel/exporters", "go.yaml.in",
}

// TestApplicationsGetNoServer: nor has the graph of its modules, which sets the versions of an
// application's, any of those.
func TestApplicationsGetNoServer(t *testing.T) {
	for _, path := range list(t, "-m", "-f", "{{.Path}}", "all") {
		if path == module || slices.ContainsFunc(serversModules, func(m string) bool { return below(path, m) }) {
			t.Errorf("an application gets %s with the client", path)
		}
	}
}

// TestTheClientIsTestedAsItIs: its tests run in the servers' module, with the versions that an
// application gets.
func TestTheClientIsTestedAsItIs(t *testing.T) {
	versions := required(t, ".")
	for path, version := range required(t, "client") {
		if versions[path] != version {
			t.Errorf("client/go.mod has %s %s, and go.mod %q", path, version, versions[path])
		}
	}
}

// required are the modules in a folder's go.mod, with their versions.
func required(t *testing.T, folder string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, folder, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	versions := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); strings.HasPrefix(line, "\t") && len(words) > 1 {
			versions[words[0]] = words[1]
		}
	}
	return versions
}

// list returns what go list prints in the client's folder, as an application sees that module: without the workspace.
func list(t *testing.T, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"list"}, args...)...)
	cmd.Dir, cmd.Env = filepath.Join(root, "client"), append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}
