package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/server/tlsconf"
)

// TestRolesFile: the file in the help of set-roles is read, and shown as a file
// that says the same.
func TestRolesFile(t *testing.T) {
	_, text, _ := strings.Cut(newClusterSetRolesCommand(&app{}).Long, "refused.\n\n")
	table, err := parseRoles([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &idnodev1.RoleTable{
		Roles: []*idnodev1.AccessRole{
			{Name: "shop", Principals: []string{"shop.example.org"}, Grants: []*idnodev1.RoleGrant{
				{
					Database: "shop", Prefix: "orders", Boundary: proto.Bool(true),
					Rights: []idnodev1.Right{idnodev1.Right_RIGHT_GENERATE, idnodev1.Right_RIGHT_RANGES},
				},
				{Database: "shop", Name: "invoices", Rights: []idnodev1.Right{idnodev1.Right_RIGHT_NUMBER}},
			}},
			{Name: "operators", Principals: []string{"spiffe://example.org/operator"}, Grants: []*idnodev1.RoleGrant{
				{Database: "*", Rights: []idnodev1.Right{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
			}},
		},
		Limits: []*idnodev1.CallerLimit{{Principals: []string{"shop.example.org"}, InFlight: 200, IdsPerSecond: 50000, NewNamesPerHour: 100}},
	}
	if diff := cmp.Diff(want, table, protocmp.Transform()); diff != "" {
		t.Fatal(diff)
	}
	wantShownTheSame(t, table)
}

// wantShownTheSame checks that the file which shows a table says the same.
func wantShownTheSame(t *testing.T, table *idnodev1.RoleTable) {
	t.Helper()
	var out bytes.Buffer
	if err := printRoles(&out, table); err != nil {
		t.Fatal(err)
	}
	again, err := parseRoles(out.Bytes())
	if err != nil {
		t.Fatalf("%v of\n%s", err, out.String())
	}
	if diff := cmp.Diff(table, again, protocmp.Transform()); diff != "" {
		t.Fatal(diff)
	}
}

// TestBadRolesFiles: a slip in a file is an error, never a wider grant.
func TestBadRolesFiles(t *testing.T) {
	for text, want := range map[string]string{
		"roles: [{name: a, principals: [x], grants: [{databse: shop, rights: [read]}]}]":         "databse",
		"roles: [{name: a, principals: [x], grants: [{rights: [read]}]}]":                        "no database",
		"roles: [{name: a, principals: [x], grants: [{database: shop, rights: [reed]}]}]":        "reed",
		"roles: [{name: a, principals: [x], grants: [{database: shop, rights: [unspecified]}]}]": "unspecified",
		// It would be for orders2 too, of which nobody may have thought.
		"roles: [{name: a, principals: [x], grants: [{database: shop, prefix: orders, rights: [read]}]}]": "boundary",
		"rolls: []": "rolls",
		"# none\n---\n---\nroles: [{name: a, principals: [x], grants: [{database: shop, rights: [read]}]}]": "more than one",
		"roles: {": "line 1: did not find expected node content",
		// Without roles everybody may do everything, so their lack is said in words.
		"":              "roles: []",
		"# roles: []\n": "roles: []",
		"---\n":         "roles: []",
		"roles:\n":      "roles: []",
		"roles: null":   "roles: []",
		"{}":            "roles: []",
		"limits: [{principals: [x], in-flight: 1}]": "roles: []",
	} {
		if _, err := parseRoles([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if table, err := parseRoles([]byte("roles: []")); err != nil || len(table.GetRoles()) != 0 {
		t.Errorf("a file that takes all roles away: %v %v", table, err)
	}
}

// TestTakingRolesAwayAsks, and only that: what goes or changes is named.
func TestTakingRolesAwayAsks(t *testing.T) {
	const one, two = "{name: a, principals: [x], grants: [{database: '*', rights: [cluster]}]}",
		"{name: b, principals: [y], grants: [{database: shop, rights: [read]}]}"
	const limits = "limits: [{principals: ['*'], in-flight: 5}]"
	for name, tt := range map[string]struct{ before, after, lost string }{
		"the same":         {"roles: [" + one + "]\n" + limits, "roles: [" + one + "]\n" + limits, ""},
		"one more":         {"roles: [" + one + "]", "roles: [" + one + "," + two + "]", ""},
		"none before":      {"roles: []", "roles: [" + one + "]", "what no role allows is refused from then on"},
		"none after":       {"roles: [" + one + "]", "roles: []", "every caller with a certificate may then do everything"},
		"one goes":         {"roles: [" + one + "," + two + "]", "roles: [" + one + "]", `the role "b" goes`},
		"one changes":      {"roles: [" + one + "]", "roles: [" + strings.Replace(one, "x", "z", 1) + "]", `the role "a" changes`},
		"limits come":      {"roles: [" + one + "]", "roles: [" + one + "]\n" + limits, "the limits change"},
		"limits go":        {"roles: [" + one + "]\n" + limits, "roles: [" + one + "]", "the limits change"},
		"a file of limits": {"roles: []", "roles: []\n" + limits, "the limits change"},
	} {
		t.Run(name, func(t *testing.T) {
			before, err := parseRoles([]byte(tt.before))
			if err != nil {
				t.Fatal(err)
			}
			sent := 0
			node := newFakeNode(t, func(req proto.Message) (proto.Message, error) {
				if _, ok := req.(*idnodev1.GetRolesRequest); ok {
					return &idnodev1.GetRolesResponse{Table: before, SetAtIndex: 2}, nil
				}
				sent++
				return &idnodev1.SetRolesResponse{LogIndex: 3}, nil
			})
			file := filepath.Join(t.TempDir(), "roles.yaml")
			if err := os.WriteFile(file, []byte(tt.after), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"cluster", "set-roles", file, "--endpoint", node.addr}
			got := command(t, args...)
			asked := strings.Contains(got.stderr, "say --yes")
			if asked != (tt.lost != "") || (sent == 0) != asked || !strings.Contains(got.stderr, tt.lost) {
				t.Errorf("%+v, %d calls, want the question for %q", got, sent, tt.lost)
			}
			if got = command(t, append(args, "--yes")...); got.code != exitOK || !strings.Contains(got.stdout, "set at log index 3") {
				t.Errorf("with --yes: %+v", got)
			}
		})
	}
}

// TestRolesOfANewerCluster: what this program does not know would be lost in a file, and is not replaced.
func TestRolesOfANewerCluster(t *testing.T) {
	grant := &idnodev1.RoleGrant{Database: "*", Rights: []idnodev1.Right{idnodev1.Right_RIGHT_READ}}
	grant.ProtoReflect().SetUnknown([]byte{0xfa, 0x06, 0}) // Field 111.
	node := newFakeNode(t, answer(&idnodev1.GetRolesResponse{Table: &idnodev1.RoleTable{
		Roles: []*idnodev1.AccessRole{{Name: "a", Principals: []string{"x"}, Grants: []*idnodev1.RoleGrant{grant}}},
	}}))
	file := filepath.Join(t.TempDir(), "roles.yaml")
	if err := os.WriteFile(file, []byte("roles: []"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"roles"}, {"roles", "--output", "json"}, {"set-roles", file, "--yes"}} {
		got := command(t, append(append([]string{"cluster"}, args...), "--endpoint", node.addr)...)
		const want = "a field that this program does not know: number 111 of RoleGrant; a newer idnode does"
		if got.code != exitFailed || got.stdout != "" || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

// FuzzParseRoles: a file is refused, or shown as one that says the same.
func FuzzParseRoles(f *testing.F) {
	_, text, _ := strings.Cut(newClusterSetRolesCommand(&app{}).Long, "refused.\n\n")
	f.Add([]byte(text))
	f.Add([]byte("limits: [{principals: ['*', \"\\x85\"], in-flight: -1}]"))
	f.Add([]byte("---\n# none\n---\nroles: []\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := parseRoles(data)
		if err != nil {
			return
		}
		wantShownTheSame(t, table)
	})
}

// TestComposeSetsNoRoles: a start would overwrite those that an operator has set.
func TestComposeSetsNoRoles(t *testing.T) {
	text, err := os.ReadFile("../../deploy/docker-compose.yml")
	if err != nil || strings.Contains(string(text), "set-roles") {
		t.Errorf("the compose file sets roles: %v", err)
	}
}

// TestPrometheusHasNoRights: what scrapes the nodes of the compose file, of the manifests and of the chart has no
// certificate, and the roles are for the client alone.
func TestPrometheusHasNoRights(t *testing.T) {
	table, err := readRoles(t.Context(), nil, "../../deploy/roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range table.GetRoles() {
		if !slices.Equal(role.GetPrincipals(), []string{tlsconf.FirstClient}) {
			t.Errorf("the role %s is for %q", role.GetName(), role.GetPrincipals())
		}
	}
	const plain = "http://0.0.0.0:7403"
	for file, want := range map[string]string{
		"../../deploy/docker-compose.yml":                    "IDNODE_METRICS: " + plain,
		"../../deploy/kubernetes/config.yaml":                "metrics: " + plain,
		"../../deploy/helm/idnode/templates/config.yaml":     "metrics: " + plain,
		"../../deploy/helm/idnode/templates/monitoring.yaml": "port: metrics",
		"../../deploy/prometheus/prometheus.yml":             `["idnode-a:7403", "idnode-b:7403", "idnode-c:7403"]`,
	} {
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), want) || strings.Contains(string(text), "prometheus.key") {
			t.Errorf("%s has no %s, or a certificate for Prometheus: %v", file, want, err)
		}
	}
}
