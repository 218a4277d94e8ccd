package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	"pgregory.net/rapid"

	"github.com/idnode/idnode/server/config"
)

// load parses flags as the program does, and loads.
func load(t *testing.T, flags, environ []string) (*config.Config, error) {
	t.Helper()
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(fs)
	fs.Bool("print-config", false, "a flag of the command's own")
	if err := fs.Parse(flags); err != nil {
		t.Fatalf("flags: %v", err)
	}
	return config.Load(fs, environ)
}

func mustLoad(t *testing.T, flags, environ []string) *config.Config {
	t.Helper()
	c, err := load(t, flags, environ)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return c
}

// alone is the least that a node needs.
var alone = []string{"--tag=A", "--data-dir=/data"}

func with(base []string, more ...string) []string {
	return append(append([]string{}, base...), more...)
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "idnode.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	want := config.Default()
	want.Tag, want.DataDir = "A", "/data"
	want.AdvertiseGRPC, want.AdvertiseRaft, want.AdvertiseHTTP = want.GRPC, want.Raft, want.HTTP
	if diff := cmp.Diff(&want, mustLoad(t, with(alone, "--print-config"), nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPrecedence(t *testing.T) {
	path := writeFile(t, "data-dir: /file\ncall-timeout: 1s\nlog-level: debug\nmax-in-flight: 7\n"+
		"peer: {A: \"a:1\", Z: \"z:1\"}\n")
	c := mustLoad(t,
		[]string{"--tag=A", "--config", path, "--call-timeout=1500ms", "--peer=A=a:3", "--peer=B=b:3"},
		[]string{
			"IDNODE_CALL_TIMEOUT=2s", "IDNODE_LOG_LEVEL=warn", "IDNODE_TAG=Q", "IDNODE_PEER=A=a:2,C=c:2",
			"IDNODE_ENDPOINTS=x:1", "HOME=/root", "IDNODE_CONFIG=/nowhere",
		})
	got := []any{c.Tag, c.DataDir, c.CallTimeout, c.LogLevel, c.MaxInFlight, c.LogFormat, c.Peer}
	want := []any{"A", "/file", 1500 * time.Millisecond, "warn", 7, "text", map[string]string{"A": "a:3", "B": "b:3"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEnvironmentNamesTheFile(t *testing.T) {
	path := writeFile(t, "tag: A\ndata-dir: /file\ncall-timeout: 9s\njoin:\n")
	if c := mustLoad(t, nil, []string{"IDNODE_CONFIG=" + path}); c.DataDir != "/file" || c.CallTimeout != 9*time.Second {
		t.Errorf("%+v", c)
	}
}

// Every setting can come from a flag, from the environment and from a file, in
// each form that a file allows.
func TestEveryFormOfAList(t *testing.T) {
	want := map[string]string{"A": "a:1", "B": "b:2"}
	for name, c := range map[string]*config.Config{
		"flags":       mustLoad(t, with(alone, "--peer=A=a:1,B=b:2"), nil),
		"environment": mustLoad(t, alone, []string{"IDNODE_PEER=A=a:1, B=b:2"}),
		"list":        mustLoad(t, with(alone, "--config", writeFile(t, "peer: [A=a:1, B=b:2]")), nil),
		"mapping":     mustLoad(t, with(alone, "--config", writeFile(t, "peer:\n  A: a:1\n  B: b:2")), nil),
		"text":        mustLoad(t, with(alone, "--config", writeFile(t, "peer: A=a:1,B=b:2")), nil),
	} {
		if diff := cmp.Diff(want, c.Peer); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestValuesAreAsWritten: YAML would take them for a truth value, an octal number, or the file's encoding.
func TestValuesAreAsWritten(t *testing.T) {
	c := mustLoad(t, []string{"--data-dir=/data", "--config", writeFile(t, "\ufefftag: TRUE\nleader-priority: 010\npeer: {TRUE: \"t:1\", NO: \"n:1\"}\n")}, nil)
	if diff := cmp.Diff([]any{"TRUE", 10, map[string]string{"TRUE": "t:1", "NO": "n:1"}}, []any{c.Tag, c.LeaderPriority, c.Peer}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEmptyVariable: nothing is a value too, which wins over the file.
func TestEmptyVariable(t *testing.T) {
	path := writeFile(t, "http: 127.0.0.1:9\nwatcher: true\ntag: A\njoin: [b:1]")
	c := mustLoad(t, []string{"--data-dir=/data", "--config", path, "--watcher=false"}, []string{"IDNODE_HTTP=", "IDNODE_TAG="})
	if c.HTTP != "" || c.Tag != "" || c.Watcher || len(c.Join) != 1 {
		t.Errorf("HTTP %q, tag %q, watcher %v, join %v", c.HTTP, c.Tag, c.Watcher, c.Join)
	}
}

// TestServiceLinks: what Kubernetes and Docker tell a container of a service that is named
// idnode is no setting, and no slip in the name of one.
func TestServiceLinks(t *testing.T) {
	links := []string{
		"IDNODE_SERVICE_HOST=10.0.0.1", "IDNODE_SERVICE_PORT=7400", "IDNODE_SERVICE_PORT_GRPC=7400", "IDNODE_PORT=tcp://10.0.0.1:7400",
		"IDNODE_PORT_7400_TCP=tcp://10.0.0.1:7400", "IDNODE_PORT_7400_TCP_PROTO=tcp", "IDNODE_PORT_7400_TCP_PORT=7400",
		"IDNODE_PORT_7400_TCP_ADDR=10.0.0.1",
		"IDNODE_QUORUM_SERVICE_HOST=10.0.0.2", "IDNODE_QUORUM_PORT=tcp://10.0.0.2:7400",
	}
	if got := config.UnknownVariables(links); len(got) > 0 {
		t.Errorf("%v", got)
	}
	slips := []string{"IDNODE_PORT=7400", "IDNODE_GRPC_PORT=7400", "IDNODE_SERVICE=x", "IDNODE_PORTS=tcp://x"}
	if got := config.UnknownVariables(slips); len(got) != len(slips) {
		t.Errorf("of %v only %v", slips, got)
	}
}

func TestEveryErrorOfLoadingNamesItsPlace(t *testing.T) {
	for name, tc := range map[string]struct {
		flags   []string
		environ []string
		file    string
		want    []string
	}{
		"unknown variable": {
			environ: []string{"IDNODE_CALL_TIMEUOT=1s"},
			want:    []string{"IDNODE_CALL_TIMEUOT; IDNODE_CALL_TIMEOUT is one"},
		},
		"two unknown variables": {
			environ: []string{"IDNODE_ODD_B=1", "IDNODE_ODD_A"},
			want:    []string{"variable IDNODE_ODD_A\nenvironment: unknown variable IDNODE_ODD_B"},
		},
		"unknown key":             {file: "call-timeuot: 1s", want: []string{"idnode.yaml", "call-timeuot; call-timeout is one"}},
		"two unknown keys":        {file: "b: 1\na: 1", want: []string{"key a", "key b"}},
		"file names a file":       {file: "config: x.yaml", want: []string{"config"}},
		"bad variable":            {environ: []string{"IDNODE_CALL_TIMEOUT=soon"}, want: []string{"IDNODE_CALL_TIMEOUT", "soon"}},
		"bad number in the file":  {file: "max-in-flight: many", want: []string{"idnode.yaml", "max-in-flight"}},
		"duration without a unit": {file: "call-timeout: 2", want: []string{"call-timeout", "such as 500ms"}},
		"list for one value":      {file: "call-timeout: [1s]", want: []string{"call-timeout"}},
		"nested too deep":         {file: "peer: {A: {x: y}}", want: []string{"peer"}},
		"size of an unknown unit": {file: "snapshot-bytes: 64MB", want: []string{"snapshot-bytes", "such as 512KiB"}},
		"fraction":                {file: "max-in-flight: 1.5", want: []string{"max-in-flight"}},
		"peer without tag":        {flags: []string{"--peer=host:1"}, want: []string{"--peer", "host:1"}},
		"peer twice":              {flags: []string{"--peer=A=a:1", "--peer=A=a:2"}, want: []string{"--peer", "A", "twice"}},
		"key twice in the file":   {file: "tag: A\ntag: B", want: []string{"idnode.yaml", "already"}},
		"a list of settings":      {file: "- tag: A", want: []string{"idnode.yaml"}},
		"no YAML":                 {file: "{", want: []string{"idnode.yaml"}},
		"no such file":            {flags: []string{"--config=/nowhere/at-all"}, want: []string{"/nowhere/at-all"}},
	} {
		t.Run(name, func(t *testing.T) {
			flags := with(alone, tc.flags...)
			if tc.file != "" {
				flags = append(flags, "--config", writeFile(t, tc.file))
			}
			_, err := load(t, flags, tc.environ)
			for _, part := range tc.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("error %v does not name %q", err, part)
				}
			}
		})
	}
}

func TestClientVariablesAreLeftAlone(t *testing.T) {
	var environ []string
	for _, name := range config.ClientVariables() {
		environ = append(environ, name+"=anything")
	}
	mustLoad(t, alone, environ)
}

func TestAdvertisedAddresses(t *testing.T) {
	everywhere := with(alone, "--insecure", "--grpc=0.0.0.0:7400", "--raft=[::]:7401", "--http=:7402")
	for name, tc := range map[string]struct {
		flags []string
		want  [3]string
	}{
		"where it listens": {alone, [3]string{"127.0.0.1:7400", "127.0.0.1:7401", "127.0.0.1:7402"}},
		"its entry as peer": {
			with(everywhere, "--peer=A=idnode-a:17400,B=idnode-b:17400"),
			[3]string{"idnode-a:17400", "idnode-a:7401", "idnode-a:7402"},
		},
		"the host of gRPC": {with(everywhere, "--advertise-grpc=10.0.0.7:1"), [3]string{"10.0.0.7:1", "10.0.0.7:7401", "10.0.0.7:7402"}},
		"as it is told": {
			with(everywhere, "--advertise-grpc=h:1", "--advertise-raft=r:2", "--advertise-http=p:3"),
			[3]string{"h:1", "r:2", "p:3"},
		},
		"without HTTP":       {with(alone, "--http="), [3]string{"127.0.0.1:7400", "127.0.0.1:7401", ""}},
		"a port yet to come": {with(alone, "--grpc=127.0.0.1:0"), [3]string{"127.0.0.1:0", "127.0.0.1:7401", "127.0.0.1:7402"}},
	} {
		c := mustLoad(t, tc.flags, nil)
		if diff := cmp.Diff(tc.want, [3]string{c.AdvertiseGRPC, c.AdvertiseRaft, c.AdvertiseHTTP}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

var certs = []string{"--tls-cert=c", "--tls-key=k", "--tls-ca=a"}

func TestAccepted(t *testing.T) {
	for name, flags := range map[string][]string{
		"alone":                   alone,
		"metrics elsewhere":       with(alone, "--metrics=127.0.0.1:7403"),
		"metrics without TLS":     with(alone, "--metrics=http://10.0.0.1:7403"),
		"metrics without HTTP":    with(alone, "--http=", "--metrics=127.0.0.1:7402"),
		"peers":                   with(alone, "--peer=A=127.0.0.1:1,B=b:1"),
		"joins with a tag":        with(alone, "--join=b:1", "--join=c:1"),
		"joins without a tag":     {"--data-dir=/data", "--join=b:1"},
		"watcher":                 {"--data-dir=/data", "--join=b:1", "--watcher"},
		"localhost":               with(alone, "--grpc=LOCALHOST:1"),
		"IPv6 loopback":           with(alone, "--grpc=[::1]:1"),
		"insecure":                with(alone, "--grpc=10.0.0.1:1", "--insecure"),
		"TLS":                     with(with(alone, certs...), "--grpc=10.0.0.1:1"),
		"TLS without CA, alone":   with(alone, "--tls-cert=c", "--tls-key=k"),
		"two ports yet to come":   with(alone, "--grpc=127.0.0.1:0", "--raft=127.0.0.1:0"),
		"a quick leader":          with(alone, "--heartbeat-timeout=20ms", "--storage-watchdog=300ms"),
		"server prefix":           with(alone, "--server-prefix=NorthServer"),
		"a cluster's id":          with(alone, "--cluster-id="+someCluster),
		"a reserve for a day":     with(alone, "--reserve-for=24h"),
		"hardly a mark or a wait": with(alone, "--storage-low-mark=1", "--call-timeout=200ms"),
	} {
		if _, err := load(t, flags, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAloneOnPurpose: a list of peers that is left out, or names only the node itself, may
// be a slip, after which each node would be a cluster by itself. The error says what to do. It is for a
// node without a cluster: one that is in a cluster of one, begun before the setting
// existed, starts as it did.
func TestAloneOnPurpose(t *testing.T) {
	self := with(alone, "--peer=A=a:1")
	err := mustLoad(t, self, nil).CheckFirstStart()
	for name, err := range map[string]error{"a list that names nobody else": err, "no list": mustLoad(t, alone, nil).CheckFirstStart()} {
		if !errors.Is(err, config.ErrAlone) {
			t.Fatalf("a node becomes a cluster by itself by %s: %v", name, err)
		}
	}
	for _, way := range []string{"all first nodes", "join", "single-node"} {
		if !strings.Contains(err.Error(), way) {
			t.Errorf("%v does not tell of %s", err, way)
		}
	}
	for name, flags := range map[string][]string{
		"on purpose": with(self, "--single-node"), "no list, on purpose": with(alone, "--single-node"),
		"two peers": with(alone, "--peer=A=a:1,B=b:1"), "joins": with(alone, "--join=b:1"),
	} {
		if err := mustLoad(t, flags, nil).CheckFirstStart(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	both := mustLoad(t, []string{"--data-dir=/data", "--tag=B", "--single-node", "--peer=A=a:1", "--join=a:1"}, nil)
	if both.SingleNode || len(both.Join) != 1 {
		t.Errorf("a node that joins with the file of the first one: %+v", both)
	}
}

// someCluster is the id of a cluster.
const someCluster = "c3a1c1e7a0e04b63f2b2f6f3b1a0d3c4"

// TestAClusterThatHasBegunBeginsOnce: a node whose settings have its cluster's id, and whose
// data directory is empty, begins no other. The error says what to do.
func TestAClusterThatHasBegunBeginsOnce(t *testing.T) {
	begun := with(alone, "--cluster-id="+someCluster)
	for name, flags := range map[string][]string{
		"peers": with(begun, "--peer=A=a:1,B=b:1"), "single node": with(begun, "--single-node"), "neither": begun,
	} {
		err := mustLoad(t, flags, nil).CheckFirstStart()
		if !errors.Is(err, config.ErrNoData) {
			t.Fatalf("%s: %v", name, err)
		}
		for _, way := range []string{"/data", "mount it", "--join", "without cluster-id"} {
			if !strings.Contains(err.Error(), way) {
				t.Errorf("%v does not tell of %s", err, way)
			}
		}
	}
	if err := mustLoad(t, with(begun, "--join=b:1"), nil).CheckFirstStart(); err != nil {
		t.Errorf("a node that joins: %v", err)
	}
}

// TestNobodyIsNamed: with TLS, somebody must say who may do what is dangerous: this node's
// settings, or roles. The error names both settings.
func TestNobodyIsNamed(t *testing.T) {
	single := with(alone, "--single-node")
	secured := with(single, certs...)
	err := mustLoad(t, secured, nil).CheckFirstStart()
	if !errors.Is(err, config.ErrUnguarded) || !strings.Contains(err.Error(), "--admin") || !strings.Contains(err.Error(), "--admin '*'") {
		t.Fatalf("a first start: %v", err)
	}
	if c := mustLoad(t, secured, nil); c.CheckGuard(true) != nil || !errors.Is(c.CheckGuard(false), config.ErrUnguarded) || !c.Guarded() {
		t.Errorf("a later start: with roles %v, without %v", c.CheckGuard(true), c.CheckGuard(false))
	}
	for name, tc := range map[string]struct {
		flags   []string
		guarded bool
	}{
		"administrators": {with(secured, "--admin=a", "--admin=b"), true}, "open": {with(secured, "--admin=*"), false},
		"open, no CA": {with(single, "--tls-cert=c", "--tls-key=k", "--admin=*"), false},
		"no TLS":      {single, false}, "joins": {with(with(alone, certs...), "--admin=a", "--join=b:1"), true},
	} {
		c := mustLoad(t, tc.flags, nil)
		if err := c.CheckFirstStart(); err != nil || c.Guarded() != tc.guarded {
			t.Errorf("%s: guarded %v, %v", name, c.Guarded(), err)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		flags []string
		want  string
	}{
		"no data dir":                {[]string{"--tag=A"}, "data-dir"},
		"no tag":                     {[]string{"--data-dir=/data"}, "tag"},
		"no tag among peers":         {[]string{"--data-dir=/data", "--peer=A=a:1"}, "tag"},
		"no tag with TLS":            {with(certs, "--data-dir=/data", "--join=a:1"), "tag"},
		"tag in small letters":       {with(alone, "--tag=a"), "tag"},
		"tag RAFT":                   {with(alone, "--tag=RAFT"), "tag"},
		"own tag not among peers":    {with(alone, "--peer=B=b:1"), "peer"},
		"alone, with other peers":    {with(alone, "--single-node", "--peer=A=a:1,B=b:1"), "single-node"},
		"alone, and joins":           {with(alone, "--single-node", "--join=b:1"), "single-node"},
		"bad tag among peers":        {with(alone, "--peer=A=a:1,b2=b:1"), "peer"},
		"bad address among peers":    {with(alone, "--peer=A=a,B=b:1"), "peer"},
		"two peers at one address":   {with(alone, "--peer=A=a:1,B=a:1"), "peer"},
		"peer at every address":      {with(alone, "--peer=A=0.0.0.0:1,B=b:1"), "peer"},
		"join at a bad address":      {with(alone, "--join=b"), "join"},
		"short cluster id":           {with(alone, "--cluster-id="+someCluster[1:]), "cluster-id"},
		"cluster id in capitals":     {with(alone, "--cluster-id="+strings.ToUpper(someCluster)), "cluster-id"},
		"watcher alone":              {with(alone, "--watcher"), "watcher"},
		"watcher among peers":        {with(alone, "--watcher", "--peer=A=a:1,B=b:1"), "watcher"},
		"server prefix with slash":   {with(alone, "--server-prefix=a/b"), "server-prefix"},
		"server prefix with pipe":    {with(alone, "--server-prefix=a|"), "server-prefix"},
		"long server prefix":         {with(alone, "--server-prefix="+strings.Repeat("x", 129)), "server-prefix"},
		"grpc without port":          {with(alone, "--grpc=127.0.0.1"), "grpc"},
		"grpc empty":                 {with(alone, "--grpc="), "grpc"},
		"raft empty":                 {with(alone, "--raft="), "raft"},
		"port too large":             {with(alone, "--http=127.0.0.1:65536"), "http"},
		"port in words":              {with(alone, "--http=127.0.0.1:http"), "http"},
		"host that is none":          {with(alone, "--grpc=http://x:1"), "grpc"},
		"two listeners at once":      {with(alone, "--raft=127.0.0.1:7400"), "raft"},
		"advertised port 0":          {with(alone, "--advertise-grpc=h:0"), "advertise-grpc"},
		"advertised everywhere":      {with(alone, "--advertise-raft=0.0.0.0:1"), "advertise-raft"},
		"nothing to advertise":       {with(alone, "--insecure", "--grpc=:7400"), "advertise-grpc"},
		"advertised HTTP without it": {with(alone, "--http=", "--advertise-http=h:1"), "advertise-http"},
		"HTTP host without HTTP":     {with(alone, "--http=", "--http-host=h.example"), "http-host"},
		"HTTP host with a port":      {with(alone, "--http-host=h.example:7402"), "http-host"},
		"HTTP host as a URL":         {with(alone, "--http-host=http://h.example"), "http-host"},
		"HTTP host for any":          {with(alone, "--http-host=*.example"), "http-host"},
		"HTTP host for all":          {with(alone, "--http-host=."), "http-host"},
		"not on loopback":            {with(alone, "--grpc=10.0.0.1:1"), "grpc"},
		"not on loopback, by name":   {with(alone, "--raft=host:1"), "raft"},
		"not on loopback, HTTP":      {with(alone, "--http=10.0.0.1:1"), "http"},
		"metrics without port":       {with(alone, "--metrics=127.0.0.1"), "metrics"},
		"metrics of no address":      {with(alone, "--metrics=http://"), "metrics"},
		"metrics of https":           {with(alone, "--metrics=https://127.0.0.1:7403"), "metrics"},
		"metrics where HTTP is":      {with(alone, "--metrics=127.0.0.1:7402"), "metrics"},
		"not on loopback, metrics":   {with(alone, "--metrics=10.0.0.1:1"), "metrics"},
		"certificate without key":    {with(alone, "--tls-cert=c"), "tls-cert"},
		"key without certificate":    {with(alone, "--tls-key=k"), "tls-cert"},
		"admin without CA":           {with(alone, "--admin=x"), "admin"},
		"open without TLS":           {with(alone, "--admin=*"), "admin"},
		"open, and administrators":   {with(with(alone, certs...), "--admin=*", "--admin=x"), "admin"},
		"CA alone":                   {with(alone, "--tls-ca=a"), "tls-ca"},
		"TLS and insecure":           {with(with(alone, certs...), "--insecure"), "insecure"},
		"TLS among peers, no CA":     {with(alone, "--tls-cert=c", "--tls-key=k", "--peer=A=a:1,B=b:1"), "tls-ca"},
		"TLS, open Raft, no CA":      {with(alone, "--tls-cert=c", "--tls-key=k", "--raft=10.0.0.1:1"), "tls-ca"},
		"heartbeat too short":        {with(alone, "--heartbeat-timeout=19ms"), "heartbeat-timeout"},
		"snapshot bytes":             {with(alone, "--snapshot-bytes=63KiB"), "snapshot-bytes"},
		"leader priority":            {with(alone, "--leader-priority=-1"), "leader-priority"},
		"leader priority too great":  {with(alone, "--leader-priority=1001"), "leader-priority"},
		"log format not known":       {with(alone, "--max-log-format=99"), "max-log-format"},
		"call too short":             {with(alone, "--call-timeout=199ms"), "call-timeout"},
		"watchdog below heartbeat":   {with(alone, "--heartbeat-timeout=3s"), "storage-watchdog"},
		"reserve too long":           {with(alone, "--reserve-for=24h1s"), "reserve-for"},
		"reserve too short":          {with(alone, "--reserve-for=999ms"), "reserve-for"},
		"reserve negative":           {with(alone, "--reserve-for=-1s"), "reserve-for"},
		"in flight":                  {with(alone, "--max-in-flight=0"), "max-in-flight"},
		"message beyond its room":    {with(alone, "--max-held-bytes=8MiB"), "max-held-bytes"},
		"low mark":                   {with(alone, "--storage-low-mark=0"), "storage-low-mark"},
		"log level":                  {with(alone, "--log-level=loud"), "log-level"},
		"log format":                 {with(alone, "--log-format=xml"), "log-format"},
	} {
		_, err := load(t, tc.flags, nil)
		if err == nil || !strings.HasPrefix(err.Error(), "config: "+tc.want+": ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// One run shows everything that is wrong.
func TestValidateGathers(t *testing.T) {
	_, err := load(t, []string{"--max-in-flight=0", "--log-level=loud"}, nil)
	for _, name := range []string{"data-dir", "tag", "max-in-flight", "log-level"} {
		if err == nil || !strings.Contains("\n"+strings.TrimPrefix(err.Error(), "config: "), "\n"+name+": ") {
			t.Errorf("%v does not name %s", err, name)
		}
	}
}

// reread prints a configuration and loads what was printed.
func reread(t *testing.T, c *config.Config) *config.Config {
	t.Helper()
	var printed bytes.Buffer
	if err := c.Print(&printed); err != nil {
		t.Fatal(err)
	}
	return mustLoad(t, []string{"--config", writeFile(t, printed.String())}, nil)
}

func TestPrintedConfigurationReadsBack(t *testing.T) {
	for name, flags := range map[string][]string{
		"alone": alone,
		"sizes": with(alone, "--snapshot-bytes=65537", "--max-held-bytes=1GiB", "--config", writeFile(t, "storage-low-mark: 1048576")),
		"peers": with(alone, "--insecure", "--grpc=0.0.0.0:1", "--peer=A=a:1,B=b:1,C=c:1", "--http="),
		"joins": {"--data-dir=/a: b # 'c' \"d\"", "--join=a:1,b:2", "--watcher", "--call-timeout=1m30s", "--server-prefix=true"},
	} {
		c := mustLoad(t, flags, nil)
		if diff := cmp.Diff(c, reread(t, c)); diff != "" {
			t.Errorf("%s (-printed +read):\n%s", name, diff)
		}
	}
}

// TestPrintedTextsReadBack looks for texts that YAML would take for something
// else.
func TestPrintedTextsReadBack(t *testing.T) {
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"null", "~", "yes", "0x10", "1e3", "- a", "{}", "2026-01-01", "A=B", "007", "1.50"}),
		rapid.StringMatching(`[ -~]{1,20}`),
	)
	rapid.Check(t, func(rt *rapid.T) {
		c := mustLoad(t, alone, nil)
		c.DataDir = text.Draw(rt, "data-dir")
		if diff := cmp.Diff(c, reread(t, c)); diff != "" {
			rt.Fatalf("(-printed +read):\n%s", diff)
		}
	})
}

func TestEverySettingIsPrinted(t *testing.T) {
	var printed bytes.Buffer
	if err := mustLoad(t, alone, nil).Print(&printed); err != nil {
		t.Fatal(err)
	}
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(fs)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != "config" && !strings.Contains("\n"+printed.String(), fmt.Sprintf("\n%s: ", f.Name)) {
			t.Errorf("--%s is not printed", f.Name)
		}
	})
}

// TestOwnEntryElsewhere: a node that listens elsewhere than its own entry among the peers says.
func TestOwnEntryElsewhere(t *testing.T) {
	for _, tt := range []struct {
		entry, grpc, advertised string
		want                    bool
	}{
		{"127.0.0.1:7400", "127.0.0.1:7400", "", false},
		{"a.example:7400", "0.0.0.0:7400", "", false},
		{"a.example:7400", "10.0.0.1:7400", "", false},
		{"10.0.0.1:7400", ":7400", "", false},
		{"127.0.0.1:7400", "127.0.0.1:7500", "", true},
		{"a.example:7400", "0.0.0.0:7500", "", true},
		{"10.0.0.1:7400", "10.0.0.2:7400", "", true},
		{"10.0.0.1:7400", "10.0.0.2:7500", "10.0.0.2:7500", false},
	} {
		c := mustLoad(t, with(alone, "--peer=A="+tt.entry, "--peer=B=b.example:7400", "--grpc="+tt.grpc,
			"--advertise-grpc="+tt.advertised, "--insecure"), nil)
		if got := c.OwnEntryElsewhere(); (got != "") != tt.want || tt.want && !strings.Contains(got, tt.entry) {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

// TestLoadLists: a command beside the node reads its lists, and no other setting.
func TestLoadLists(t *testing.T) {
	fs := pflag.NewFlagSet("recover", pflag.ContinueOnError)
	config.AddListFlags(fs)
	fs.String("data-dir", "", "a flag of the command's own")
	path := writeFile(t, "call-timeout: nonsense\npeer: {A: \"a:1\", B: \"b:1\"}\njoin: [c:1]\n")
	if err := fs.Parse([]string{"--config", path, "--data-dir", "/data", "--peer", "B=b:2"}); err != nil {
		t.Fatal(err)
	}
	peer, join, err := config.LoadLists(fs, []string{"IDNODE_PEER=B=b:3"})
	if diff := cmp.Diff(map[string]string{"B": "b:2"}, peer); err != nil || diff != "" || !slices.Equal(join, []string{"c:1"}) {
		t.Errorf("%v %v %v", peer, join, err)
	}
}

// TestPeerAndJoin: with both, the first nodes have peers and all others join.
func TestPeerAndJoin(t *testing.T) {
	both := []string{"--data-dir=/data", "--peer=A=a:1,B=b:1", "--join=a:1"}
	first := mustLoad(t, with(both, "--tag=B"), nil)
	if len(first.Peer) != 2 || first.Join != nil {
		t.Errorf("a first node: peers %v, joins %v", first.Peer, first.Join)
	}
	later := mustLoad(t, with(both, "--tag=C"), nil)
	if later.Peer != nil || len(later.Join) != 1 {
		t.Errorf("a later node: peers %v, joins %v", later.Peer, later.Join)
	}
	if _, err := load(t, with(both, "--tag=B", "--watcher"), nil); err == nil {
		t.Error("a first node is a watcher")
	}
}
