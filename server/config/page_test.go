package config

import (
	"flag"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/internal/bytesize"
)

var update = flag.Bool("update", false, "rewrite docs/reference/configuration.md")

const page = "../../docs/reference/configuration.md"

// TestPage: docs/reference/configuration.md says what the table of settings, the defaults and
// Validate say.
func TestPage(t *testing.T) {
	want := pageText()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/reference/configuration.md differs from the settings: go test ./server/config -run TestPage -update")
	}
}

// TestSettingsAreFew: each is there because somebody changes it for a reason. What nobody
// does is a constant, or follows from another setting.
func TestSettingsAreFew(t *testing.T) {
	all := settings(&Config{})
	if len(reasons) != len(all) {
		t.Errorf("there are reasons to change %d settings, of %d", len(reasons), len(all))
	}
	if n := len(all) + 1; n > 40 { // With --config.
		t.Errorf("there are %d settings, at most 40 are wanted", n)
	}
	for _, s := range all {
		if reasons[s.name] == "" {
			t.Errorf("nobody changes %s", s.name)
		}
	}
}

// reasons are who changes each setting, and when.
var reasons = map[string]string{
	"tag":               "every operator: one per node",
	"data-dir":          "every operator: the folder on the durable disk",
	"server-prefix":     "application owner: ids should show a site, not a node tag",
	peerName:            "operator of a new cluster",
	joinName:            "operator who adds a node",
	"cluster-id":        "every operator: after the first start",
	"join-token-file":   "operator who adds a node whose certificate lacks the right `cluster`",
	"single-node":       "evaluator, or operator of a cluster of one",
	"watcher":           "operator who adds a remote or forwarding node: commits do not wait for it",
	"max-log-format":    "operator during an upgrade: keeps the way back open",
	"trust-data":        "operator after a disaster: all newer data is lost",
	"stay-down":         "operator of Docker: it restarts every container that ends",
	"grpc":              "operator of several machines, or where the port is in use",
	"raft":              "operator of several machines, or where the port is in use",
	"http":              "operator of several machines, or where the port is in use",
	"metrics":           "operator of a separate monitoring network",
	"advertise-grpc":    "operator of containers or NAT: the node is reached at another address",
	"advertise-raft":    "operator of containers or NAT: the node is reached at another address",
	"advertise-http":    "operator of containers or NAT: the node is reached at another address",
	"http-host":         "operator of a load balancer in front of HTTP without TLS",
	"tls-cert":          "operator of several machines",
	"tls-key":           "operator of several machines",
	"tls-ca":            "operator of several machines",
	"admin":             "security owner: TLS is on and no roles are set",
	"insecure":          "operator of an isolated network, or of one that another layer encrypts",
	"call-timeout":      "operator of long links: a call should outlast two elections",
	"reserve-for":       "operator of a site that may be cut off: as long as that lasts",
	"max-in-flight":     "operator of a very large or very small machine",
	"max-held-bytes":    "operator of little memory, or of callers with many connections",
	"heartbeat-timeout": "operator of long links or stalling machines: they look like lost leaders",
	"leader-priority":   "operator of several sites: the leader should be near most callers",
	"snapshot-bytes":    "operator of a large state on a busy disk: fewer snapshots, longer start",
	"storage-watchdog":  "operator of network disks: they stall and recover",
	"storage-low-mark":  "operator of a shared or tiny disk",
	"audit":             "security owner: changes must be provable",
	"log-level":         "support: while looking for a fault",
	"log-format":        "operator who collects logs",
}

const pageHead = `# Configuration

<!-- Written by go test ./server/config -run TestPage -update: change server/config instead. -->

` + "For operators. Each setting of `idnode serve` has one name. It is the flag (`--NAME`), the key in the YAML file that `--config` or `IDNODE_CONFIG` names,\n" +
	"and, as in `IDNODE_DATA_DIR`, the variable in the environment. A flag wins over the environment, that over the file, and that over the default.\n" +
	"An unknown name is an error. A list is given by commas, by the flag several times, or in the file as a list.\n" +
	"A size is a whole number of `KiB`, `MiB`, `GiB` or `TiB`, or of bytes.\n" +
	"`idnode serve --print-config` shows what a node would run with.\n\n" +
	"A node reads its settings at its start. The settings that a whole cluster shares are in [Settings and limits](../operate/limits.md).\n"

func pageText() string {
	var out strings.Builder
	out.WriteString(pageHead)
	c := Default()
	for _, g := range groups(&c) {
		fmt.Fprintf(&out, "\n## %s\n\n| flag, key | default | values | what it is | who changes it: when |\n"+
			"|---|---|---|---|---|\n", g.title)
		for _, s := range g.settings {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", s.name, s.defaultText(), s.values(), s.usage, reasons[s.name])
		}
	}
	return out.String()
}

func (s setting) defaultText() string {
	text := strings.Trim(fmt.Sprint(s.value()), "[]")
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// value returns what the field holds, as it is printed.
func (s setting) value() any {
	switch field := s.field.(type) {
	case *string:
		return *field
	case *bool:
		return *field
	case *int:
		return *field
	case *uint64:
		return *field
	default:
		return s.printed()
	}
}

// far sets the field to a value that no rule allows, above or below all that are.
func (s setting) far(up bool) {
	switch field := s.field.(type) {
	case *string:
		*field = "?"
	case *int:
		*field = pick(up, math.MaxInt, math.MinInt)
	case *bytesize.Size:
		*field = pick[bytesize.Size](up, math.MaxInt64, math.MinInt64)
	case *uint64:
		*field = pick[uint64](up, math.MaxUint64, 0)
	case *time.Duration:
		*field = pick[time.Duration](up, math.MaxInt64, math.MinInt64)
	}
}

func pick[T any](first bool, a, b T) T {
	if first {
		return a
	}
	return b
}

// objections returns what Validate says where the setting alone is far off.
func objections(name string, up bool) []string {
	c := Default()
	for _, s := range settings(&c) {
		if s.name == name {
			s.far(up)
		}
	}
	return strings.Split(fmt.Sprint(c.Validate()), "\n")
}

var (
	inRange = regexp.MustCompile(`^(\S+): \S+ is not from (\S+) to (\S+)$`)
	inList  = regexp.MustCompile(`^(\S+): "\?" is none of (.+)$`)
)

// values returns what Validate lets pass for one setting, or nothing where it has no
// bounds. A default of 0 stands for "not at all" where the bounds are above it.
func (s setting) values() string {
	name, off := s.name, ""
	if s.defaultText() == "`0s`" {
		off = "`0s`, or "
	}
	for _, up := range []bool{false, true} {
		for _, text := range objections(name, up) {
			if m := inRange.FindStringSubmatch(text); m != nil && m[1] == name {
				return off + fmt.Sprintf("`%s` to `%s`", m[2], m[3])
			}
			if m := inList.FindStringSubmatch(text); m != nil && m[1] == name {
				return "`" + strings.ReplaceAll(m[2], ", ", "`, `") + "`"
			}
		}
	}
	return ""
}
