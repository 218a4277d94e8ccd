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
	list := exec.CommandContext(t.Context(), "go", "list", "-m", "all")
	list.Dir = filepath.Join(root, "client")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	own, others, _ := strings.Cut(string(out), "\n")
	if own != module+"/client" {
		t.Errorf("the client is in %s", own)
	}
	for line := range strings.Lines(others) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == module || slices.ContainsFunc(serversModules, func(m string) bool { return below(name, m) }) {
			t.Errorf("an application gets %s with the client", name)
		}
	}
}
