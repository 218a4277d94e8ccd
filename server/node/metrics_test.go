package node

import (
	"cmp"
	"context"
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/access/rights"
	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/internal/freeport"
	"github.com/idnode/idnode/server/admission"
	"github.com/idnode/idnode/server/config"
	"github.com/idnode/idnode/server/service"
	"github.com/idnode/idnode/server/tlsconf"
	"github.com/idnode/idnode/test/tier"
)

const testTimeout = 30 * time.Second

// configs returns the configurations of the first nodes of a cluster, by tag.
func configs(t *testing.T, tags ...string) map[string]*config.Config {
	t.Helper()
	all, peers := map[string]*config.Config{}, map[string]string{}
	for _, tag := range tags {
		c := config.Default()
		c.Tag, c.DataDir = tag, filepath.Join(t.TempDir(), tag)
		c.GRPC, c.Raft, c.HTTP = freeport.For(t), freeport.For(t), freeport.For(t)
		c.AdvertiseGRPC, c.AdvertiseRaft, c.AdvertiseHTTP = c.GRPC, c.Raft, c.HTTP
		// A busy machine, or its disk, must not cause an election.
		c.HeartbeatTimeout, c.StorageWatchdog = time.Second, time.Minute
		peers[tag], all[tag] = c.GRPC, &c
	}
	for _, c := range all {
		if c.SingleNode = len(tags) == 1; !c.SingleNode {
			c.Peer = peers
		}
	}
	return all
}

// running is a node that serves until stop is called, or the test ends.
type running struct {
	*Node
	t      *testing.T
	client *http.Client
	url    string
	cancel context.CancelFunc
	ended  chan error
}

func run(t *testing.T, c *config.Config) *running {
	t.Helper()
	return runWith(t, Options{Config: c, Version: "1.2.3"})
}

func runWith(t *testing.T, opts Options) *running {
	t.Helper()
	n, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{
		Node: n, t: t, client: &http.Client{Timeout: testTimeout}, url: "http://" + n.HTTPAddr(), cancel: cancel,
		ended: make(chan error, 1),
	}
	go func() { r.ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		r.client.CloseIdleConnections()
		r.stop()
	})
	return r
}

// stop stops the node; a second time does nothing.
func (r *running) stop() {
	r.cancel()
	if r.ended != nil {
		<-r.ended
		r.ended = nil
	}
}

func (r *running) ready() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := r.Ready(ctx); err != nil {
		r.t.Fatal(err)
	}
	if !r.readiness.started.Load() {
		r.t.Error("a caller that saw the node ready may be refused, since it is starting")
	}
	r.until("ready", func() bool { status, _ := r.get("/readyz"); return status == http.StatusOK })
}

// until waits for a condition.
func (r *running) until(what string, holds func() bool) {
	r.t.Helper()
	end := time.After(testTimeout)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			r.t.Fatalf("not within %s: %s", testTimeout, what)
		}
	}
}

func (r *running) get(path string) (status int, body string) {
	r.t.Helper()
	res, err := r.client.Get(r.url + path)
	if err != nil {
		return 0, err.Error()
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// scrape returns the series of a scrape.
func (r *running) scrape() map[string]float64 {
	r.t.Helper()
	status, text := r.get("/metrics")
	if status != http.StatusOK {
		r.t.Fatalf("%d: %s", status, text)
	}
	series := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 {
			continue
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil {
			r.t.Fatalf("%s: %v", line, err)
		}
		series[line[:at]] = value
	}
	return series
}

func (r *running) want(series map[string]float64) {
	r.t.Helper()
	got := r.scrape()
	for name, value := range series {
		if found, ok := got[name]; !ok || found != value {
			r.t.Errorf("%s is %v (%v), want %v", name, found, ok, value)
		}
	}
}

func (r *running) generate(template string, count int64) {
	r.t.Helper()
	_, err := r.service.Generate(context.Background(), &idnodev1.GenerateRequest{Template: template, Count: count})
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestScrapeOfOneNode: which series there are after which calls.
func TestScrapeOfOneNode(t *testing.T) {
	t.Parallel()
	n := run(t, configs(t, "A")["A"])
	n.ready()
	n.generate("", 2)
	n.generate("users/", 5)
	n.generate("invoices|", 3)
	ctx := context.Background()
	for range 2 {
		_, err := n.service.NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "orders", RequestId: &idnodev1.RequestId{Id: "one"}})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.service.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/ayende"}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.service.Claim(ctx, &idnodev1.ClaimRequest{Id: "users/ayende"}); err == nil {
		t.Fatal("claimed twice")
	}
	if status, _ := n.get("/databases/default/hilo/next?tag=orders"); status != http.StatusCreated {
		t.Fatal(status)
	}
	n.want(map[string]float64{
		`idnode_ids_issued_total{database="default",strategy="guid"}`:        2,
		`idnode_ids_issued_total{database="default",strategy="server_side"}`: 5,
		`idnode_ids_issued_total{database="default",strategy="identity"}`:    3,
		`idnode_ids_issued_total{database="default",strategy="hilo"}`:        96,
		`idnode_hilo_ranges_total{database="default"}`:                       3,
		`idnode_request_id_hits_total{database="default"}`:                   1,
		`idnode_call_errors_total{reason="ID_CLAIMED"}`:                      1,
		`idnode_state_entries{kind="identities"}`:                            1,
		`idnode_state_entries{kind="hilo_counters"}`:                         1,
		`idnode_state_entries{kind="claims"}`:                                1,
		`idnode_state_entries{kind="members"}`:                               1,
		`idnode_etag_last{database="default"}`:                               5,
		`idnode_etag_reserved{database="default"}`:                           65536,
		`idnode_quorum_present`:                                              1,
		`idnode_quorum_missing_seconds`:                                      0,
		`idnode_raft_state{state="leader"}`:                                  1,
		`idnode_raft_servers{suffrage="voter"}`:                              1,
		`idnode_member_reachable{member="A"}`:                                1,
		`idnode_storage_full`:                                                0,
		`idnode_commit_entries_in_flight`:                                    0,
		`idnode_leader_changes_total`:                                        0,
		`idnode_state_differences_total`:                                     0,
		`idnode_groups_forwarded_total`:                                      0,
	})
	// The ceiling is raised beside the calls.
	n.until("a ceiling", func() bool { return n.scrape()[`idnode_etag_ceiling{database="default"}`] > 0 })
	got := n.scrape()
	for _, name := range []string{
		"idnode_commit_group_operations_count", "idnode_commit_wait_seconds_count", "idnode_commit_group_seconds_count",
		"idnode_commit_entry_operations_count", "idnode_commit_entry_seconds_count", "idnode_log_write_seconds_count",
		"idnode_log_write_seconds_sum", "idnode_raft_term", "idnode_raft_last_index", "idnode_raft_commit_index",
		"idnode_raft_applied_index", "idnode_state_name_bytes", `idnode_state_entries{kind="request_ids"}`, "go_goroutines",
		`idnode_etag_ceiling{database="default"}`,
	} {
		if got[name] <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
	}
}

// TestScrapeAfterMore: the metrics that exist only after ranges were returned, calls were
// refused over HTTP, snapshots were written, or a counter was seeded high, which the survey
// of all counters finds.
func TestScrapeAfterMore(t *testing.T) {
	tier.Long(t)
	c := configs(t, "A")["A"]
	c.Tuning.SnapshotInterval, c.Tuning.SnapshotThreshold = 100*time.Millisecond, 1
	n := run(t, c)
	n.ready()
	n.until("a snapshot", func() bool { return n.scrape()["idnode_snapshots_written_total"] > 0 })
	if got := n.scrape(); got["idnode_snapshot_bytes"] <= 0 || got["idnode_snapshot_write_seconds"] <= 0 {
		t.Errorf("a snapshot of %v bytes took %v s", got["idnode_snapshot_bytes"], got["idnode_snapshot_write_seconds"])
	}
	for _, call := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "hilo/next?tag=orders", http.StatusCreated},
		{http.MethodPut, "hilo/return?tag=orders&end=32&last=10", http.StatusNoContent},
		{http.MethodPut, "hilo/return?tag=orders&end=32&last=10", http.StatusNoContent},
		{http.MethodPost, "identity/next", http.StatusBadRequest},
		{http.MethodPost, "identity/next?name=a||", http.StatusBadRequest},
		{http.MethodPost, "identity/seed?name=full&value=" + strconv.FormatInt(1<<62, 10), http.StatusOK},
	} {
		n.send(call.method, "/databases/default/"+call.path, call.status)
	}
	n.want(map[string]float64{
		`idnode_hilo_ranges_total{database="default"}`:           1,
		`idnode_hilo_ranges_returned_total{database="default"}`:  1,
		`idnode_hilo_numbers_returned_total{database="default"}`: 22,
		`idnode_call_errors_total{reason="INVALID_REQUEST"}`:     1,
		`idnode_call_errors_total{reason="INVALID_NAME"}`:        1,
		`idnode_counter_space_used_ratio{kind="server_side"}`:    0,
		`idnode_commit_operations_given_up_total`:                0,
		`idnode_commit_entries_failed_total`:                     0,
		`idnode_build_info` + buildLabels(t, n):                  1,
		`idnode_raft_fsm_pending`:                                0,
		`idnode_raft_servers{suffrage="nonvoter"}`:               0,
		`idnode_state_entries{kind="databases"}`:                 1,
		`idnode_state_entries{kind="deleted_identities"}`:        0,
	})
	n.until("the newest index in a round of pings", func() bool {
		got := n.scrape()
		return got[`idnode_member_applied_index{member="A"}`] == got["idnode_raft_applied_index"]
	})
	n.stop()
	n = run(t, c)
	n.ready()
	n.until("the fullest identity", func() bool { return n.scrape()[`idnode_counter_space_used_ratio{kind="identity"}`] == 0.5 })
	if got := n.scrape()[`idnode_counter_space_used_ratio{kind="hilo"}`]; got <= 0 || got > 1e-15 {
		t.Errorf("the fullest HiLo counter has used %v", got)
	}
}

// send makes a call over HTTP, which must be answered with status.
func (r *running) send(method, path string, status int) {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := r.client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	if res.Body.Close(); res.StatusCode != status {
		r.t.Fatalf("%s %s: %s, want %d", method, path, res.Status, status)
	}
}

// buildLabels returns the labels of idnode_build_info, which name this version.
func buildLabels(t *testing.T, n *running) string {
	t.Helper()
	for name := range n.scrape() {
		if labels, ok := strings.CutPrefix(name, "idnode_build_info"); ok && strings.Contains(labels, `version="1.2.3"`) {
			return labels
		}
	}
	t.Error("the build is not told")
	return ""
}

// TestScrapeOfThreeNodes: who leads, what travels between them, and a fail-over.
func TestScrapeOfThreeNodes(t *testing.T) {
	t.Parallel()
	nodes := map[string]*running{}
	for tag, c := range configs(t, "A", "B", "C") {
		nodes[tag] = run(t, c)
	}
	for _, n := range nodes {
		n.ready()
	}
	var leader *running
	var followers []*running
	nodes["A"].until("a leader that all know", func() bool {
		leader, followers = nodes[nodes["A"].cluster.Status().LeaderTag], nil
		for tag, n := range nodes {
			if leader == nil || nodes[n.cluster.Status().LeaderTag] != leader {
				return false
			}
			if nodes[tag] != leader {
				followers = append(followers, n)
			}
		}
		return true
	})
	for _, n := range followers {
		n.generate("users|", 1)
	}
	for _, n := range followers {
		n.want(map[string]float64{
			`idnode_raft_state{state="follower"}`: 1, `idnode_raft_state{state="leader"}`: 0,
			`idnode_raft_servers{suffrage="voter"}`: 3, `idnode_quorum_present`: 1,
			`idnode_ids_issued_total{database="default",strategy="identity"}`: 1,
		})
		if got := n.scrape(); got["idnode_groups_forwarded_total"] < 1 {
			t.Errorf("a follower forwarded %v groups", got["idnode_groups_forwarded_total"])
		}
	}
	if got := leader.scrape(); got["idnode_groups_received_total"] < 2 || got["idnode_commit_entry_operations_sum"] < 2 ||
		got[`idnode_raft_state{state="leader"}`] != 1 {
		t.Errorf("the leader received %v groups and wrote %v operations", got["idnode_groups_received_total"],
			got["idnode_commit_entry_operations_sum"])
	}
	leader.stop()
	for _, n := range followers {
		n.until("a fail-over", func() bool { return n.scrape()["idnode_leader_changes_total"] >= 1 })
	}
	followers[0].stop()
	last := followers[1]
	last.until("no quorum", func() bool { status, _ := last.get("/readyz"); return status == http.StatusServiceUnavailable })
	if _, body := last.get("/readyz"); !strings.HasPrefix(body, "not ready: no quorum: no majority of the voters has been in reach for ") {
		t.Errorf("without a quorum: %q", body)
	}
	if status, _ := last.get("/livez"); status != http.StatusOK {
		t.Errorf("a node without a quorum does not live: %d", status)
	}
	if got := last.scrape(); got["idnode_quorum_present"] != 0 || got["idnode_quorum_missing_seconds"] <= 0 {
		t.Errorf("without a quorum: present %v, missing for %v s", got["idnode_quorum_present"], got["idnode_quorum_missing_seconds"])
	}
}

// TestAWrongListOfPeersIsReported: two nodes whose lists differ form no cluster, and the
// readiness and the status of each say why.
func TestAWrongListOfPeersIsReported(t *testing.T) {
	t.Parallel()
	all := configs(t, "A", "B")
	all["B"].Peer = maps.Clone(all["A"].Peer)
	all["B"].Peer["C"] = freeport.For(t)
	for _, n := range []*running{run(t, all["A"]), run(t, all["B"])} {
		n.until("word of the list, over HTTP", func() bool {
			status, body := n.get("/readyz")
			return status == http.StatusServiceUnavailable && strings.Contains(body, "was started with another list of peers")
		})
		n.until("word of the list, in the status", func() bool {
			return strings.Contains(strings.Join(n.service.Status().Warnings, "; "), "was started with another list of peers")
		})
	}
}

// TestReadinessOfANodeThatStarts: a lone node of three says what it waits for.
func TestReadinessOfANodeThatStarts(t *testing.T) {
	n := run(t, configs(t, "A", "B", "C")["A"])
	n.until("an answer", func() bool { status, _ := n.get("/livez"); return status == http.StatusOK })
	n.until("word of who is missing", func() bool { _, body := n.get("/readyz"); return strings.Contains(body, "B at ") })
	status, body := n.get("/readyz")
	if status != http.StatusServiceUnavailable ||
		!strings.HasPrefix(body, "not ready: starting: no majority of the voters is in reach yet\nwarning: no place in a cluster yet: ") {
		t.Errorf("%d %q", status, body)
	}
	if got := n.scrape(); got["idnode_quorum_present"] != 0 || got["idnode_quorum_missing_seconds"] <= 0 {
		t.Errorf("present %v, missing for %v s", got["idnode_quorum_present"], got["idnode_quorum_missing_seconds"])
	}
}

// TestMetricsPort: with an address of their own, metrics and health are there and
// nowhere else, and health says so while the node stops.
func TestMetricsPort(t *testing.T) {
	t.Parallel()
	c := configs(t, "A")["A"]
	c.Metrics = "127.0.0.1:0"
	n := run(t, c)
	for _, path := range []string{"/metrics", "/livez", "/readyz"} {
		if status, _ := n.get(path); status != http.StatusBadRequest {
			t.Errorf("%s on the HTTP port: %d", path, status)
		}
	}
	n.url = "http://" + n.MetricsAddr()
	n.ready()
	if status, _ := n.get("/databases/default/hilo/next?tag=orders"); status != http.StatusNotFound {
		t.Errorf("a call for ids on the metrics port: %d", status)
	}
	n.readiness.stop()
	// A busy machine adds the warning of a slow disk.
	status, body := n.get("/readyz")
	if status != http.StatusServiceUnavailable || !strings.HasPrefix(body, "not ready: stopping: new calls are refused\n") {
		t.Errorf("%d %q", status, body)
	}
	n.stop()
	if status, _ := n.get("/livez"); status != 0 {
		t.Errorf("after the stop: %d", status)
	}
}

// TestMetricsNameNoDatabases to who may not read everything; on a port of their own
// they do.
func TestMetricsNameNoDatabases(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		c := configs(t, "A")["A"]
		if own {
			c.Metrics = "127.0.0.1:0"
		}
		n := run(t, c)
		if own {
			n.url = "http://" + n.MetricsAddr()
		}
		n.ready()
		ops := admission.WithCaller(context.Background(), admission.Caller{Principal: "dns:ops"})
		if _, err := n.service.Generate(ops, &idnodev1.GenerateRequest{Database: "shop", Template: "users/"}); err != nil {
			t.Fatal(err)
		}
		named := func() bool { _, text := n.get("/metrics"); return strings.Contains(text, `="shop"`) }
		setRoles := func(anybody rights.Right) {
			n.until("roles", func() bool {
				_, err := n.service.SetRoles(ops, &idnodev1.SetRolesRequest{Table: service.Roles{Roles: []rights.Role{
					{Name: "operators", Principals: []string{"ops"}, Grants: []rights.Grant{{Database: rights.Any, Rights: rights.Cluster}}},
					{
						Name: "all", Principals: []string{rights.Any},
						Grants: []rights.Grant{{Database: "shop", Rights: rights.Read}, {Database: rights.Any, Rights: anybody}},
					},
				}}.Message()})
				return err == nil
			})
		}
		if !named() {
			t.Error("no names without roles")
		}
		setRoles(rights.Generate)
		if named() != own {
			t.Errorf("names on the port of its own (%v): %v", own, !own)
		}
		setRoles(rights.Read)
		if !named() {
			t.Error("no names for who may read everything")
		}
	}
}

// TestRemovedNodeSaysSo: the reason in words, until it ends.
func TestRemovedNodeSaysSo(t *testing.T) {
	tier.Long(t)
	nodes := map[string]*running{}
	for tag, c := range configs(t, "A", "B", "C") {
		nodes[tag] = run(t, c)
	}
	for _, n := range nodes {
		n.ready()
	}
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if _, err := nodes["A"].cluster.RemoveMember(ctx, "C", false, nil); err != nil {
		t.Fatal(err)
	}
	c := nodes["C"]
	<-c.cluster.Done()
	if err := c.readiness.reason(); err == nil || !strings.HasPrefix(err.Error(), "removed: ") {
		t.Errorf("ready: %v", err)
	}
}

// TestMetricsOverTLS: the port follows the rules of the others: who has no
// certificate of the CA sees nothing.
func TestMetricsOverTLS(t *testing.T) {
	t.Parallel()
	c := configs(t, "A")["A"]
	secured(t, c)
	dir := filepath.Dir(c.TLSCA)
	c.Metrics = "127.0.0.1:0"
	n := run(t, c)
	n.url = "https://" + n.MetricsAddr()
	if status, text := n.get("/livez"); status != 0 {
		t.Errorf("without a certificate: %d %s", status, text)
	}
	material, err := tlsconf.LoadClient(tlsconf.Files{
		CA: c.TLSCA, Cert: filepath.Join(dir, "client.crt"), Key: filepath.Join(dir, "client.key"),
	})
	if err != nil {
		t.Fatal(err)
	}
	n.client = &http.Client{Timeout: testTimeout, Transport: &http.Transport{TLSClientConfig: material.Client("")}}
	n.ready()
	n.want(map[string]float64{`idnode_quorum_present`: 1})
}

// TestMetricsWithoutTLS: probes and Prometheus need no certificate on a port of their own, of a node whose
// other ports ask for one. The port has nothing else.
func TestMetricsWithoutTLS(t *testing.T) {
	t.Parallel()
	c := configs(t, "A")["A"]
	secured(t, c)
	c.Metrics = "http://127.0.0.1:0"
	n := run(t, c)
	plain := "http://" + n.MetricsAddr()
	n.url = plain
	n.ready()
	for path, want := range map[string]int{
		"/metrics": http.StatusOK, "/livez": http.StatusOK, "/docs/operate/alarms.md": http.StatusOK, "/": http.StatusNotFound,
		"/page/api/overview":                 http.StatusNotFound,
		"/idnode.v1.IdsService/NextIdentity": http.StatusNotFound, "/databases/default/hilo/next?tag=orders": http.StatusNotFound,
	} {
		if status, _ := n.get(path); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	n.url = "http://" + n.HTTPAddr()
	if status, _ := n.get("/livez"); status == http.StatusOK {
		t.Error("the HTTP port answers without TLS")
	}
}

// TestProbesHaveTwoMethods, on the HTTP port and on one of their own.
func TestProbesHaveTwoMethods(t *testing.T) {
	t.Parallel()
	for _, own := range []string{"", "http://127.0.0.1:0"} {
		c := configs(t, "A")["A"]
		c.Metrics = own
		n := run(t, c)
		n.url = "http://" + cmp.Or(n.MetricsAddr(), n.HTTPAddr())
		n.ready()
		for _, path := range []string{"/metrics", "/livez", "/readyz"} {
			for method, want := range map[string]int{
				http.MethodGet: http.StatusOK, http.MethodHead: http.StatusOK,
				http.MethodOptions: http.StatusMethodNotAllowed, http.MethodPost: http.StatusMethodNotAllowed,
			} {
				req, err := http.NewRequest(method, n.url+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, res.Body) // A node answers one scrape of a caller at a time.
				res.Body.Close()
				if allow := res.Header.Get("Allow"); res.StatusCode != want || (want == http.StatusOK) == (allow == "GET, HEAD") {
					t.Errorf("%s %s: %d, Allow: %q", method, path, res.StatusCode, allow)
				}
			}
		}
	}
}
