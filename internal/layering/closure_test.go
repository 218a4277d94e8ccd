package layering

import (
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

// serversModules are modules that only the servers need, as is the program's own. (gRPC's graph has
// OpenTelemetry's SDK, of which gRPC itself needs nothing.)
var serversModules = []string{
	"github.com/HdrHistogram", "github.com/hashicorp", "github.com/prometheus", "github.com/spf13", "github.com/tidwall", "go.etcd.io",
	"go.opentelemetry.io/contrib/instrumentation", "go.opentelemetry.io/otel/exporters", "go.yaml.in",
}

// TestTheClientNeedsFewModules: the client's module graph has none of Raft, storage, metrics or the
// command line.
func TestTheClientNeedsFewModules(t *testing.T) {
	for _, line := range modulesOf(t, "client", "{{.Path}}") {
		if line == module || slices.ContainsFunc(serversModules, func(m string) bool { return below(line, m) }) {
			t.Errorf("an application gets %s with the client", line)
		}
	}
}

// TestTheClientIsTestedAsItIs: its tests run in the servers' module, with the versions that an
// application gets.
func TestTheClientIsTestedAsItIs(t *testing.T) {
	const direct = "{{if not (or .Main .Indirect)}}{{.Path}} {{.Version}}{{end}}"
	all := modulesOf(t, ".", "{{.Path}} {{.Version}}")
	for _, needed := range modulesOf(t, "client", direct) {
		if needed != "" && !slices.Contains(all, needed) {
			t.Errorf("client/go.mod has %s, and go.mod another version", needed)
		}
	}
}

// modulesOf returns what go list -m all prints of each module in a folder.
func modulesOf(t *testing.T, folder, format string) []string {
	t.Helper()
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", format, "all")
	list.Dir = filepath.Join(root, folder)
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(out), "\n")
}
