package clients

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
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
  ...[NaN, "", "500", null].map((number) => () => bills.take(["a"], { number, because: "by hand" })),
  ...[NaN, Infinity, "-5", 1e-7, null].map((expiresIn) => () => bills.take(["a"], { expiresIn })),
]) console.log(await call().catch(({ name }) => name));
try { new Client(["127.0.0.1:1"], { tryTimout: 50 }); } catch ({ name }) { console.log(name); }
`)
	const want = "TypeError\nTypeError\nTypeError\nTypeError\nTypeError\nTypeError\nTypeError\n" +
		"InvalidError\nInvalidError\nInvalidError\nNoEndpointError\nNoEndpointError\nTypeError\nTypeError\nTypeError\nTypeError\n" +
		"InvalidError\nInvalidError\nInvalidError\nInvalidError\nInvalidError\nTypeError\n"
	if got != want {
		t.Errorf("the calls ended with\n%swant\n%s", got, want)
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

// TestNodeReadsCertificatesAgain: files that were replaced are used for new connections, but only once they fit each other.
func TestNodeReadsCertificatesAgain(t *testing.T) {
	got := nodeProgram(t, `
import { copyFileSync, mkdtempSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "./index.js";
const [endpoint, old, renewed, turn] = process.argv.slice(1);
const into = mkdtempSync(join(tmpdir(), "tls-"));
const copy = (from, ...names) => names.forEach((name) => copyFileSync(join(from, name), join(into, name)));
copy(old, "ca.crt", "client.crt", "client.key");
let warnings = 0;
process.on("warning", ({ message }) => { if (/as they were/.test(message)) warnings++; });
const client = new Client([endpoint], { timeout: 20_000, tls: { ca: join(into, "ca.crt"), cert: join(into, "client.crt"), key: join(into, "client.key") } });
const next = () => client.identity("invoices").next();
console.log(String(await next()));
copy(renewed, "client.crt"); // The key is that of the old one.
while (warnings === 0) await next();
console.log(String(await next()));
copy(renewed, "client.key", "ca.crt");
await new Promise((resolve) => { http.get(turn, (answer) => answer.resume().on("end", resolve)); });
console.log(String(await next()));
await client.close();
`, renewing(t)...)
	if got != "7\n7\n7\n" {
		t.Errorf("the calls gave %s", got)
	}
}
