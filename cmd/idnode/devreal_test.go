package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestDevForReal runs a whole cluster twice over the same data, at other ports: it comes
// back, and its counters go on.
func TestDevForReal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, identity := range []string{"users/1\n", "users/4\n"} {
		base := freeBasePort(t, 3)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		out := &stopWhenReady{stop: stop}
		var stderr strings.Builder
		a := &app{stdout: out, stderr: &stderr, newServer: newNode}
		code := a.run(ctx, []string{"dev", "--data-dir", dir, "--base-port", base}, strings.NewReader(""))
		stop()
		text := out.String()
		// A clean start and stop has nothing to warn of.
		if code != exitOK || !strings.HasSuffix(text, "ready\n") || stderr.String() != "" {
			t.Fatalf("run %d: code %d\n%s\n%s", i+1, code, text, stderr.String())
		}
		if !strings.Contains(text, "identity     "+identity) {
			t.Errorf("run %d: %q is missing in:\n%s", i+1, identity, text)
		}
		if n := strings.Count(text, "\nids from "); n != 3 {
			t.Errorf("run %d: ids from %d nodes", i+1, n)
		}
	}
}

// TestDevLosesNodes: ids go on without a killed node, and without one that was removed.
func TestDevLosesNodes(t *testing.T) {
	t.Parallel()
	in, say := io.Pipe()
	out := newTranscript()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	base := freeBasePort(t, 3)
	code := make(chan int)
	go func() {
		a := &app{stdout: out, stderr: io.Discard, newServer: newNode}
		code <- a.run(ctx, []string{"dev", "--base-port", base}, in)
	}()
	_, endpoints, _ := strings.Cut(out.await(t, "ready\n"), "IDNODE_ENDPOINTS=")
	endpoints, _, _ = strings.Cut(endpoints, "\n")
	next := func(want string) {
		t.Helper()
		if got := command(t, "next", "invoices|", "--endpoint", endpoints, "--timeout", "1m"); got.stdout != want+"\n" {
			t.Fatalf("%+v, want %s", got, want)
		}
	}
	next("invoices/1")
	fmt.Fprintln(say, "kill A")
	out.await(t, "A is killed")
	next("invoices/2")
	fmt.Fprintln(say, "start A")
	out.await(t, "A is ready")
	if got := command(t, "cluster", "remove", "B", "--yes", "--endpoint", endpoints); got.code != exitOK {
		t.Fatalf("%+v", got)
	}
	out.await(t, "node B: cluster: this node was removed")
	next("invoices/3")
	stop()
	if got := <-code; got != exitOK {
		t.Errorf("code %d", got)
	}
}

// TestCommandsForReal goes through the commands against a cluster of one.
func TestCommandsForReal(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ready := make(chan struct{})
	out := &stopWhenReady{stop: func() { close(ready) }}
	base := freeBasePort(t, 1)
	done := make(chan int)
	go func() {
		a := &app{stdout: out, stderr: &strings.Builder{}, newServer: newNode}
		done <- a.run(ctx, []string{"dev", "--nodes", "1", "--base-port", base}, strings.NewReader(""))
	}()
	defer func() {
		stop()
		<-done
	}()
	select {
	case <-ready:
	case <-ctx.Done():
		t.Fatal("dev did not get ready")
	}
	endpoint := "127.0.0.1:" + base
	overHTTP(t, out.String())
	steps := []struct {
		line string
		code int
		want string // a part of what is printed on either stream
	}{
		{"next invoices| --count 2", exitOK, "invoices/1\ninvoices/2\n"},
		{"next invoices| --count 1500", exitOK, "\ninvoices/1502\n"},
		{"next invoices| --request-id one", exitOK, "invoices/1503\n"},
		{"next invoices| --request-id one", exitOK, "invoices/1503\n"},
		{"next invoices| --request-id one --count 2", exitFailed, "REQUEST_ID_REUSED"},
		{"next docs/ --count 2000", exitOK, "docs/0000000000000002000-A\n"},
		{"identity get invoices", exitOK, "1503\n"},
		{"identity seed invoices 2000 --expected 1", exitFailed, "CONCURRENCY"},
		{"identity seed invoices 2000", exitOK, "2000\n"},
		{"identity list --prefix inv", exitOK, "invoices\t2000\n"},
		{"identity delete invoices", exitOK, "2000\n"},
		{"identity get invoices", exitFailed, "IDENTITY_NOT_FOUND"},
		{"hilo next orders --size 10", exitOK, "high      10\n"},
		{"hilo get orders", exitOK, "10\n"},
		{"hilo set orders 20 --expected 10", exitOK, "20\n"},
		{"hilo set orders 30 --expected 10", exitFailed, "CONCURRENCY"},
		{"hilo return orders --low 1 --high 10 --last 3 --yes", exitOK, "not returned, max stays 20"},
		{"hilo list --stale", exitOK, "orders\t20\n"},
		{"snowflake next orders", exitFailed, `POOL_NOT_FOUND: there is no pool "orders" (field pool); 'idnode snowflake define POOL' begins one`},
		{"series take bills --key 1", exitFailed, "SERIES_NOT_FOUND"},
		{"series take bills --key 1", exitFailed, "'idnode series define NAME --format FORMAT' begins one"},
		{"claim teams/7", exitOK, "teams/7\n"},
		{"claim Teams/7", exitFailed, "ID_CLAIMED"},
		{"claims --prefix teams", exitOK, "teams/7\n"},
		{"release teams/7 --yes", exitOK, "teams/7\n"},
		{"claim teams/", exitUsage, "INVALID_ID"},
		{"cluster status", exitOK, "quorum   yes"},
		{"cluster members", exitOK, "leader"},
		{"cluster settings", exitOK, "KEY"},
		{"cluster remove Z --yes", exitFailed, "MEMBER_NOT_FOUND"},
		{"health", exitOK, "SERVING"},
		{"health --service idnode.live", exitOK, "SERVING"},
	}
	for _, s := range steps {
		got := command(t, append(strings.Fields(s.line), "--endpoint", endpoint)...)
		if got.code != s.code || !strings.Contains(got.stdout+got.stderr, s.want) {
			t.Errorf("%s: %+v, want code %d and %q", s.line, got, s.code, s.want)
		}
	}
}

// overHTTP makes a call at the HTTP address that dev printed.
func overHTTP(t *testing.T, printed string) {
	t.Helper()
	_, address, _ := strings.Cut(printed, "  http ")
	address, _, _ = strings.Cut(address, "\n")
	req, err := http.NewRequest(http.MethodPost, "http://"+address+"/databases/default/identity/next?name=curled", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "host.docker.internal" // As containers call this machine.
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != `{"NewIdentityValue":1}` {
		t.Errorf("over HTTP: %s %v", body, err)
	}
}
