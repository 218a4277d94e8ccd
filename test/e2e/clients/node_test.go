package clients

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/e2e/harness"
)

// nodeProgram runs a module that imports the client, and returns what it wrote.
func nodeProgram(t *testing.T, program string, args ...string) string {
	t.Helper()
	languages[1].need(t)
	cmd := exec.Command("node", append([]string{"--input-type=module", "-e", program, "--"}, args...)...)
	cmd.Dir = filepath.Join(folder, "node")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestNode runs the client's own tests.
func TestNode(t *testing.T) {
	languages[1].need(t)
	cmd := exec.Command("node", "--test", "client.test.mjs")
	cmd.Dir = filepath.Join(folder, "node")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestNodePackage installs what npm packs in an empty project. Both kinds of modules find the same client.
func TestNodePackage(t *testing.T) {
	language{tools: []string{"node", "npm"}}.need(t)
	client, err := filepath.Abs(filepath.Join(folder, "node"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "npm_config_cache="+filepath.Join(dir, "cache"), "npm_config_offline=true")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v: %s", name, args, err, out)
		}
		return string(out)
	}
	run("npm", "pack", "--silent", client)
	archives, err := filepath.Glob(filepath.Join(dir, "idnode-*.tgz"))
	if err != nil || len(archives) != 1 {
		t.Fatal(archives, err)
	}
	run("npm", "install", "--silent", "--no-audit", "--no-fund", archives[0])
	got := run("node", "--input-type=module", "-e", `
import { createRequire } from "node:module";
import { readdirSync } from "node:fs";
import { Client } from "idnode";
await new Client(["127.0.0.1:1"]).close();
const others = readdirSync("node_modules/idnode").filter((name) => !/\.js$/.test(name));
console.log(createRequire(import.meta.url)("idnode").Client === Client, others.sort().join());
`)
	if want := "true LICENSE,README.md,index.d.ts,package.json\n"; got != want {
		t.Errorf("the package gave %swant %s", got, want)
	}
	licence, err := os.ReadFile("../../../LICENSE")
	packed, failed := os.ReadFile(filepath.Join(dir, "node_modules/idnode/LICENSE"))
	if !bytes.Equal(licence, packed) || err != nil || failed != nil {
		t.Errorf("the licence is another one: %v, %v", err, failed)
	}
}

// TestTypesNeedNoOthers compiles programs in TypeScript that have no types but the client's, as modules of
// both kinds, and the README's. Without the DOM there is no AbortSignal.
func TestTypesNeedNoOthers(t *testing.T) {
	language{tools: []string{"tsc"}}.need(t)
	client, err := filepath.Abs(filepath.Join(folder, "node"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	modules := filepath.Join(dir, "node_modules")
	linked := errors.Join(os.Mkdir(modules, 0o700), os.Symlink(client, filepath.Join(modules, "idnode")))
	if err := errors.Join(linked, os.CopyFS(dir, os.DirFS("testdata/node"))); err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(client, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, snippet, found := strings.Cut(string(readme), "```ts\n")
	snippet, _, _ = strings.Cut(snippet, "```")
	if err := os.WriteFile(filepath.Join(dir, "readme.mts"), []byte(snippet), 0o600); err != nil || !found {
		t.Fatal(err, found)
	}
	for _, args := range [][]string{
		{"--lib", "es2022", "import.mts", "require.cts"},
		{"import.mts", "require.cts", "signal.mts", "readme.mts"},
	} {
		strict := []string{"--strict", "--noEmit", "--module", "node16", "--moduleResolution", "node16", "--target", "es2022"}
		cmd := exec.Command("tsc", append(strict, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
}

// TestNumbersThatAreNoWholeOnesAreRefused: above 2^53 a Number of JavaScript may be another
// one than its caller wrote.
func TestNumbersThatAreNoWholeOnesAreRefused(t *testing.T) {
	got := nodeProgram(t, `
import { Client } from "./index.js";
const client = new Client(["127.0.0.1:1"], { timeout: 50 });
const invoices = client.identity("invoices"), bills = client.series("bills"), users = client.hilo("users");
for (const call of [
  () => invoices.seed(9007199254740993), () => invoices.seed(1.5), () => invoices.seed("7"), () => invoices.seed(1n, { expected: 2 ** 60 }),
  () => invoices.next({ requestId: { id: "order-17", since: 2 ** 60 } }), () => bills.confirm([{ key: "a", number: 2 ** 60 }]),
() => bills.confirm([{ key: "a" }]),
  () => invoices.nextN("3"), () => client.nextN("invoices|", 1.5), () => users.nextIds("3"), () => invoices.seed(7),
() => invoices.seed(2n ** 60n),
]) console.log(await call().catch(({ name }) => name));
try { new Client(["127.0.0.1:1"], { tryTimout: 50 }); } catch ({ name }) { console.log(name); }
`)
	const want = "TypeError\nTypeError\nTypeError\nTypeError\nTypeError\nTypeError\nTypeError\n" +
		"InvalidError\nInvalidError\nInvalidError\nNoEndpointError\nNoEndpointError\nTypeError\n"
	if got != want {
		t.Errorf("the calls ended with\n%swant\n%s", got, want)
	}
}

// TestNodeMakesSnowflakes from windows that a node leases: the workers of two clients differ, and that of one
// that was closed is free.
func TestNodeMakesSnowflakes(t *testing.T) {
	languages[1].need(t)
	node := harness.StartCluster(t, harness.Config{Size: 1}).Nodes[0]
	pool := &idnodev1.DefinePoolRequest{Name: "Orders", LayoutName: "javascript"}
	if _, err := idnodev1.NewSnowflakeServiceClient(node.Conn).DefinePool(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	got := nodeProgram(t, `
import { Client } from "./index.js";
const clients = [1, 2].map((i) => new Client([process.argv[1]], { label: "shop " + i }));
const lists = await Promise.all(clients.map((client) => client.snowflake("orders").nextIds(3000)));
const ids = lists.flat();
console.log(new Set(ids.map(Number)).size, lists.every((list) => list.every((id, i) => i === 0 || id > list[i - 1])));
const parts = await Promise.all(lists.map(([id], i) => clients[1 - i].snowflake("orders").parse(Number(id))));
console.log(parts.map(({ worker }) => worker).sort().join(), parts.every(({ time }) => Math.abs(time - Date.now()) < 60_000));
await clients[1].close();
const next = new Client([process.argv[1]], { label: "shop 2" });
const id = await next.snowflake("orders").nextId();
console.log((await next.snowflake("orders").parse(id)).worker === parts[1].worker, id > lists[1].at(-1));
await clients[0].close();
await next.close();
`, node.HTTP)
	if want := "6000 true\n0,1 true\ntrue true\n"; got != want {
		t.Errorf("the calls gave\n%swant\n%s", got, want)
	}
}

// TestManyCallsShareFewSockets makes thousands of calls at once. A node takes 1,024
// connections from an address, and drops those beyond.
func TestManyCallsShareFewSockets(t *testing.T) {
	const calls, most = 3000, 128
	var open, value, peak atomic.Int64
	server := httptest.NewUnstartedServer(greeting(func(w http.ResponseWriter, _ *http.Request) {
		n := value.Add(1)
		_, _ = fmt.Fprintf(w, `{"blocks":[{"first":"%d","last":"%d"}],"logIndex":"101"}`, n, n)
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			n := open.Add(1)
			for have := peak.Load(); n > have && !peak.CompareAndSwap(have, n); have = peak.Load() {
			}
		case http.StateClosed:
			open.Add(-1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	got := nodeProgram(t, `
import { Client } from "./index.js";
const client = new Client([process.argv[1]], { tryTimeout: 10_000, timeout: 60_000 });
const invoices = client.identity("invoices");
const values = await Promise.all(Array.from({ length: Number(process.argv[2]) }, () => invoices.next()));
console.log(new Set(values).size);
await client.close();
`, strings.TrimPrefix(server.URL, "http://"), strconv.Itoa(calls))
	if got != fmt.Sprintln(calls) || peak.Load() > most+1 {
		t.Errorf("%d calls gave %s different values over %d connections", calls, got, peak.Load())
	}
}

// TestCallsThatWaitForAFrozenNodeMoveOn: calls beyond those that a node may have at a time wait for
// it only until it is known not to answer.
func TestCallsThatWaitForAFrozenNodeMoveOn(t *testing.T) {
	const calls, most = 1000, 128
	var frozen, value atomic.Int64
	leads := greeting(func(_ http.ResponseWriter, r *http.Request) {
		frozen.Add(1)
		<-r.Context().Done()
	})
	leader := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // Only then does the server notice that the client leaves.
		if frozen.Load() > 0 {
			frozen.Add(1)
			<-r.Context().Done()
			return
		}
		leads.ServeHTTP(w, r)
	}))
	t.Cleanup(leader.Close)
	other := httptest.NewServer(greeting(func(w http.ResponseWriter, _ *http.Request) {
		n := value.Add(1)
		_, _ = fmt.Fprintf(w, `{"blocks":[{"first":"%d","last":"%d"}],"logIndex":"101"}`, n, n)
	}))
	t.Cleanup(other.Close)
	got := nodeProgram(t, `
import { Client } from "./index.js";
const client = new Client(process.argv.slice(1, 3), { tryTimeout: 10_000, timeout: 60_000 });
const invoices = client.identity("invoices");
const values = await Promise.all(Array.from({ length: Number(process.argv[3]) }, () => invoices.next()));
console.log(new Set(values).size);
await client.close();
`, strings.TrimPrefix(leader.URL, "http://"), strings.TrimPrefix(other.URL, "http://"), strconv.Itoa(calls))
	if got != fmt.Sprintln(calls) || frozen.Load() > 4*most {
		t.Errorf("%d calls gave %s different values, after %d requests to a frozen node", calls, got, frozen.Load())
	}
}

// TestNodeReadsCertificatesAgain has a node that goes over to another CA while a client lives, whose files
// are replaced one after the other. In between they do not fit, and the client goes on with the old ones.
func TestNodeReadsCertificatesAgain(t *testing.T) {
	languages[1].need(t)
	before, after, files := harness.Certificates(t, "A"), harness.Certificates(t, "A"), t.TempDir()
	replace := func(from string, names ...string) {
		for _, name := range names {
			text, err := os.ReadFile(filepath.Join(from, name))
			if err := errors.Join(err, os.WriteFile(filepath.Join(files, name), text, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	replace(before, "ca.crt", "client.crt", "client.key")
	var config atomic.Pointer[tls.Config]
	config.Store(trusting(t, before))
	server := httptest.NewUnstartedServer(greeting(giveSeven))
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return config.Load(), nil }}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	r := language{name: "node", command: func(*testing.T) []string {
		return []string{"node", "--input-type=module", "-e", `
import { createInterface } from "node:readline";
import { Client } from "./index.js";
const [endpoint, folder] = process.argv.slice(1);
const client = new Client([endpoint], { timeout: 20_000, tls: { ca: folder + "/ca.crt", cert: folder + "/client.crt", key: folder + "/client.key" } });
let warnings = 0;
process.on("warning", ({ message }) => { if (/as they were/.test(message)) warnings++; });
for await (const line of createInterface({ input: process.stdin })) {
  const value = await client.identity("invoices").next().catch(String);
  const wait = JSON.parse(line) === "warned" && warnings === 0;
  console.log(JSON.stringify([String(value), wait]));
}
await client.close();
`, "--", strings.TrimPrefix(server.URL, "https://"), files}
	}}.start(t)
	call := func(what string) (again bool) {
		t.Helper()
		r.task(t, what)
		var got []any
		r.answer(t, &got)
		if got[0] != "7" {
			t.Fatalf("a call gave %v", got[0])
		}
		return got[1].(bool)
	}
	call("")
	replace(after, "client.crt")
	for call("warned") {
		server.CloseClientConnections()
	}
	replace(after, "client.key", "ca.crt")
	config.Store(trusting(t, after))
	server.CloseClientConnections()
	call("")
}

// TestNodeLearnsAddresses gives a client one endpoint, whose node is killed once the client knows the others.
func TestNodeLearnsAddresses(t *testing.T) {
	languages[1].need(t)
	c := harness.StartCluster(t, harness.Config{})
	r := language{name: "node", command: func(*testing.T) []string {
		return []string{"node", "--input-type=module", "-e", `
import { createInterface } from "node:readline";
import { Client } from "./index.js";
const client = new Client([process.argv[1]]);
for await (const line of createInterface({ input: process.stdin })) {
  do await client.identity("invoices").next(); while (!/learnt .*, .* leads/.test(client));
  console.log(String(await client.identity("invoices").get()));
}
`, "--", c.Nodes[0].HTTP}
	}}.start(t)
	var before, after int
	r.task(t, "")
	r.answer(t, &before)
	c.Nodes[0].Process.Kill()
	r.task(t, "")
	r.answer(t, &after)
	if after != before+1 {
		t.Errorf("the calls gave %d, and %d without the endpoint", before, after)
	}
}
