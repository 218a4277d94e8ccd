package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/idnode/idnode/server/tlsconf"
	"github.com/idnode/idnode/test/compat"
)

// TestCommandsKept: scripts have the commands, their flags and the exit codes.
func TestCommandsKept(t *testing.T) {
	names := []string{
		fmt.Sprintf("exit code %d: done", exitOK), fmt.Sprintf("exit code %d: failed", exitFailed),
		fmt.Sprintf("exit code %d: wrong usage", exitUsage), fmt.Sprintf("exit code %d: unavailable", exitUnavailable),
		fmt.Sprintf("exit code %d: damaged", exitDamaged), fmt.Sprintf("exit code %d: refused", exitRefused),
	}
	for cmd := range withChildren(newRootCommand(&app{})) {
		names = append(names, cmd.CommandPath())
		for _, flags := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.InheritedFlags()} {
			flags.VisitAll(func(f *pflag.Flag) {
				names = append(names, fmt.Sprintf("%s --%s -%s %s", cmd.CommandPath(), f.Name, f.Shorthand, f.Value.Type()))
			})
		}
	}
	compat.Names(t, compat.Commands, "commands", names)
}

// withChildren yields a command and those below it.
func withChildren(cmd *cobra.Command) iter.Seq[*cobra.Command] {
	return func(yield func(*cobra.Command) bool) {
		all := []*cobra.Command{cmd}
		for len(all) > 0 && yield(all[0]) {
			all = append(all[1:], all[0].Commands()...)
		}
	}
}

// withJSON has a line of each command that prints JSON.
var withJSON = []string{
	"backup NEW", "backup inspect POOLS", "bench --duration 1ms", "claim users/x", "claims", "cluster demote C", "cluster join-token",
	"cluster members", "cluster promote C", "cluster remove C", "cluster roles", "cluster set max-claims 5", "cluster set-roles ROLES",
	"cluster settings", "cluster status", "cluster transfer C", "database delete trial", "database list", "export NEW.csv", "health",
	"hilo get users", "hilo list", "hilo next users", "hilo reserves", "hilo return users --low 1 --high 32 --last 7",
	"hilo set users 5 --expected 0",
	"hilo who-holds users 5", "identity delete users", "identity get users", "identity list", "identity seed users 5",
	"import CSV", "import CSV --dry-run", "next users|", "next users| --count 2000", "next users/x --claim", "release users/x",
	"restore BACKUP --skip-ahead 1", "series allot books - --from 1 --to 2", "series close books 2026", "series confirm books --key k",
	"series define books --format {number}", "series delete books --expected-version 1", "series list",
	"series reconcile books - --number 1=",
	"series release books --key k", "series report books", "series report books --state open", "series report books --from 2026-10-01",
	"series resume books", "series show books", "series take books --key k", "series verify books", "series void books --key k --reason r",
	"series who-has books --key k", "snowflake acquire orders web-1", "snowflake define orders", "snowflake evict orders 3",
	"snowflake next orders", "snowflake pools", "snowflake release orders 0 --token 4fe1a2b3c4d5e6f7 --next 5",
	"snowflake renew orders 0 --token 4fe1a2b3c4d5e6f7", "snowflake workers orders", "version",
}

// TestOutputKept: scripts read what -o json prints, of answers that have every field.
func TestOutputKept(t *testing.T) {
	dir := t.TempDir()
	files := strings.NewReplacer("NEW", filepath.Join(dir, "new"), "ROLES", filepath.Join(dir, "roles"),
		"CSV", filepath.Join(dir, "list.csv"), "BACKUP", seriesBackup(t, []string{"idle"}, nil), "POOLS", seriesBackup(t, nil, nil, "carts"))
	for name, text := range map[string]string{
		"roles":    "roles: [{name: a, principals: [x], grants: [{database: '*', rights: [read]}]}]",
		"list.csv": "database,kind,name,value\nshop,identity,users,5\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	node, streams := newFakeNode(t, fullAnswer(t)).addr, serveBackup(t, aBackup(t))
	var lines []string
	tried := make(map[string]bool)
	root := newRootCommand(&app{})
	for _, line := range withJSON {
		cmd, _, err := root.Find(strings.Fields(line))
		if err != nil {
			t.Fatal(err)
		}
		tried[cmd.CommandPath()] = true
		args := append(strings.Fields(files.Replace(line)), "--output", "json")
		if cmd.Flags().Lookup("yes") != nil {
			args = append(args, "--yes")
		}
		if endpoint := cmd.Flags().Lookup("endpoint"); endpoint != nil && strings.Contains(line, "NEW") {
			args = append(args, "--endpoint", streams)
		} else if endpoint != nil {
			args = append(args, "--endpoint", node)
		}
		got := command(t, args...)
		if got.stdout == "" {
			t.Errorf("%s: %+v", line, got)
		}
		for object := range strings.Lines(got.stdout) {
			lines = append(lines, compat.JSON(t, line+": ", object, true)...)
		}
	}
	for cmd := range withChildren(root) {
		if f := cmd.Flags().Lookup("output"); f != nil && strings.Contains(f.Usage, "json") && cmd.Runnable() && !tried[cmd.CommandPath()] {
			t.Errorf("no line has %s", cmd.CommandPath())
		}
	}
	compat.Names(t, compat.Commands, "output", lines)
}

// fullAnswer answers every call with every field set, and no further page.
func fullAnswer(t *testing.T) func(proto.Message) (proto.Message, error) {
	return func(req proto.Message) (proto.Message, error) {
		if _, ok := req.(*healthpb.HealthCheckRequest); ok {
			return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
		}
		name := strings.TrimSuffix(string(req.ProtoReflect().Descriptor().FullName()), "Request") + "Response"
		kind, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(name))
		if err != nil {
			return nil, err
		}
		m := kind.New()
		compat.Fill(t, m, 1)
		for _, further := range []protoreflect.Name{"next_page_token", "more", "resume"} {
			if field := m.Descriptor().Fields().ByName(further); field != nil {
				m.Clear(field)
			}
		}
		return m.Interface(), nil
	}
}

// TestFilesKept: a context and certificates of the release serve this program. Keys are drawn, so they are made once.
func TestFilesKept(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	given := []string{"idnode/contexts.yaml", "ca.crt", "A.crt", "A.key", "client.crt", "client.key"}
	env := []string{"XDG_CONFIG_HOME=" + dir}
	if _, err := os.Stat("../../test/compat/v1.0/files"); err != nil && compat.Golden() {
		for _, line := range []string{
			"certs " + dir + " --node A", "context save prod --endpoint 10.0.0.1:7400,10.0.0.2:7400 --cluster-id " + strings.Repeat("07", 16) +
				" --tls-server-name a --tls-ca " + file("ca.crt") + " --tls-cert " + file("client.crt") + " --tls-key " + file("client.key"),
			"context use prod",
		} {
			if got := commandEnv(t, env, strings.Fields(line)...); got.code != exitOK {
				t.Fatalf("%s: %+v", line, got)
			}
		}
		for _, name := range given {
			compat.File(t, compat.Data, "files/"+filepath.Base(name), []byte(strings.ReplaceAll(string(mustRead(t, file(name))), dir, "DIR")))
		}
	}
	for _, name := range given {
		text := strings.ReplaceAll(string(compat.File(t, compat.Data, "files/"+filepath.Base(name), nil)), "DIR", dir)
		if err := os.MkdirAll(filepath.Dir(file(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	compat.Names(t, compat.Data, "context", strings.Split(strings.ReplaceAll(
		commandEnv(t, env, "context", "list").stdout+commandEnv(t, env, "context", "show", "prod").stdout, dir, "DIR"), "\n"))
	for _, name := range []string{"A", "client"} {
		material, err := tlsconf.LoadServer(tlsconf.Files{Cert: file(name + ".crt"), Key: file(name + ".key"), CA: file("ca.crt")})
		if err != nil {
			t.Fatalf("%q would be broken: %v", compat.Data, err)
		}
		state := tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{material.Leaf()}}}
		if node, as := (tlsconf.Nodes{}).Peer(state, "A") == nil, tlsconf.Principal(state); node != (name == "A") || !node && as != "dns:client" {
			t.Errorf("%q would be broken: the certificate of %s is one of a node: %t, of %q", compat.Data, name, node, as)
		}
	}
}
