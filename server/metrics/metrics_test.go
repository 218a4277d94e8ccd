package metrics

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/client/docid"
	"github.com/idnode/idnode/client/snowflake"
	"github.com/idnode/idnode/cluster"
	"github.com/idnode/idnode/cluster/disk"
	"github.com/idnode/idnode/fsm"
	"github.com/idnode/idnode/hilo"
	"github.com/idnode/idnode/identity"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/series"
	"github.com/idnode/idnode/server/reserve"
)

// scrape returns the series of a scrape, name with labels to value, both as text.
func scrape(t *testing.T, m *Metrics) map[string]string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	series := map[string]string{}
	for line := range strings.Lines(w.Body.String()) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			at := strings.LastIndexByte(line, ' ')
			series[line[:at]] = line[at+1:]
		}
	}
	return series
}

// want compares some of the series of a scrape.
func want(t *testing.T, m *Metrics, series map[string]string) {
	t.Helper()
	got := scrape(t, m)
	for name, value := range series {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
	}
}

func TestWhatTheServiceTells(t *testing.T) {
	m := New("1.2.3")
	e := m.Service()
	e.Issued("shop", docid.GUID, 1)
	e.Issued("shop", docid.ServerSide, 20)
	e.Issued("shop", docid.Identity, 300)
	e.Issued("shop", docid.Semantic, 4)
	e.NumbersTaken("shop", 5)
	e.RangeIssued("shop", 32)
	e.RangeIssued("shop", 64)
	e.RangeReturned("shop", 10)
	e.Refused("NO_QUORUM")
	m.AnsweredAgain("shop")
	want(t, m, map[string]string{
		`idnode_ids_issued_total{database="shop",strategy="guid"}`:        "1",
		`idnode_ids_issued_total{database="shop",strategy="server_side"}`: "20",
		`idnode_ids_issued_total{database="shop",strategy="identity"}`:    "300",
		`idnode_ids_issued_total{database="shop",strategy="semantic"}`:    "4",
		`idnode_ids_issued_total{database="shop",strategy="series"}`:      "5",
		`idnode_ids_issued_total{database="shop",strategy="hilo"}`:        "96",
		`idnode_hilo_ranges_total{database="shop"}`:                       "2",
		`idnode_hilo_ranges_returned_total{database="shop"}`:              "1",
		`idnode_hilo_numbers_returned_total{database="shop"}`:             "10",
		`idnode_request_id_hits_total{database="shop"}`:                   "1",
		`idnode_call_errors_total{reason="NO_QUORUM"}`:                    "1",
	})
	e.Issued("other", docid.Identity, 7)
	all := map[string]uint64{"guid": 1, "server_side": 20, "identity": 307, "semantic": 4, "hilo": 96, "series": 5}
	if got := m.Issued(); !maps.Equal(got, all) {
		t.Errorf("in all databases %v, want %v", got, all)
	}
}

// TestLabelsAreBounded: databases beyond the bound share a label, however many.
func TestLabelsAreBounded(t *testing.T) {
	m := New("")
	e := m.Service()
	const more = 100
	for i := range MaxDatabases + more {
		e.Issued(fmt.Sprintf("d%03d", i), docid.GUID, 1)
	}
	e.Issued("d000", docid.GUID, 1)
	want(t, m, map[string]string{
		`idnode_ids_issued_total{database="d000",strategy="guid"}`:  "2",
		`idnode_ids_issued_total{database="d063",strategy="guid"}`:  "1",
		`idnode_ids_issued_total{database="d064",strategy="guid"}`:  "",
		`idnode_ids_issued_total{database="other",strategy="guid"}`: fmt.Sprint(more),
	})
}

func TestWhatTheClusterTells(t *testing.T) {
	m := New("")
	e := m.Cluster()
	e.Groups.Cut(8, time.Millisecond)
	e.Groups.Answered(8, 100, 1, 2*time.Millisecond)
	e.Groups.GivenUp(3, nil)
	for range 3 {
		e.Entries.Appending()
	}
	e.Entries.Appended(2, 16, 500, 4*time.Millisecond, nil)
	e.Entries.Appended(1, 8, 250, time.Second, errors.New("lost"))
	e.Forwarded()
	e.Received()
	e.LeaderChanged()
	e.StateDiffers()
	e.Wrote(time.Millisecond)
	e.SnapshotWritten(4096, 50*time.Millisecond)
	e.SnapshotRefused()
	want(t, m, map[string]string{
		`idnode_commit_group_operations_sum`:             "8",
		`idnode_commit_wait_seconds_sum`:                 "0.001",
		`idnode_commit_group_seconds_sum`:                "0.002",
		`idnode_commit_operations_given_up_total`:        "3",
		`idnode_commit_entry_operations_sum`:             "16",
		`idnode_commit_entry_operations_bucket{le="8"}`:  "0",
		`idnode_commit_entry_operations_bucket{le="16"}`: "1",
		`idnode_commit_entry_seconds_sum`:                "0.004",
		`idnode_commit_entries_failed_total`:             "1",
		`idnode_commit_entries_in_flight`:                "1",
		`idnode_groups_forwarded_total`:                  "1",
		`idnode_groups_received_total`:                   "1",
		`idnode_leader_changes_total`:                    "1",
		`idnode_state_differences_total`:                 "1",
		`idnode_log_write_seconds_bucket{le="0.0008"}`:   "0",
		`idnode_log_write_seconds_bucket{le="0.0016"}`:   "1",
		`idnode_snapshots_written_total`:                 "1",
		`idnode_snapshots_refused_total`:                 "1",
		`idnode_snapshot_write_seconds`:                  "0.05",
		`idnode_snapshot_bytes`:                          "4096",
	})
}

// TestWhatTheServerTells: a method that nobody has called has no rows.
func TestWhatTheServerTells(t *testing.T) {
	m := New("")
	m.Methods(map[string]grpc.ServiceInfo{"s": {Methods: []grpc.MethodInfo{
		{Name: "Get"}, {Name: "Watch", IsServerStream: true}, {Name: "Talk", IsServerStream: true, IsClientStream: true},
	}}})
	m.Started("/s/Get")
	m.Handled("/s/Get", codes.OK, time.Millisecond)
	m.Started("/s/Get")
	m.Handled("/s/Get", codes.Unavailable, time.Millisecond)
	m.Started("/s/Watch")
	m.Received("/s/Watch")
	m.Sent("/s/Watch")
	m.Sent("/s/Watch")
	m.Sent("/s/Unknown")
	m.Started("/s/Unknown")
	m.Handled("/s/Unknown", codes.OK, 0)
	m.Exchanged("/s/Get", codes.Aborted)
	want(t, m, map[string]string{
		`grpc_server_started_total{grpc_method="Get",grpc_service="s",grpc_type="unary"}`:                         "2",
		`grpc_server_handled_total{grpc_code="OK",grpc_method="Get",grpc_service="s",grpc_type="unary"}`:          "1",
		`grpc_server_handled_total{grpc_code="Unavailable",grpc_method="Get",grpc_service="s",grpc_type="unary"}`: "1",
		`grpc_server_msg_received_total{grpc_method="Get",grpc_service="s",grpc_type="unary"}`:                    "2",
		`grpc_server_msg_sent_total{grpc_method="Get",grpc_service="s",grpc_type="unary"}`:                        "1",
		`grpc_server_msg_received_total{grpc_method="Watch",grpc_service="s",grpc_type="server_stream"}`:          "1",
		`grpc_server_msg_sent_total{grpc_method="Watch",grpc_service="s",grpc_type="server_stream"}`:              "2",
		`grpc_server_handling_seconds_count{grpc_method="Get",grpc_service="s",grpc_type="unary"}`:                "2",
		`grpc_server_started_total{grpc_method="Watch",grpc_service="s",grpc_type="server_stream"}`:               "1",
		`grpc_server_handled_total{grpc_code="OK",grpc_method="Talk",grpc_service="s",grpc_type="bidi_stream"}`:   "",
		`grpc_server_started_total{grpc_method="Unknown",grpc_service="s",grpc_type="unary"}`:                     "",
		`idnode_exchange_calls_total{grpc_code="Aborted",grpc_method="Get"}`:                                      "1",
	})
}

// world is a node that stands still.
type world struct {
	missing time.Duration
	stats   *cluster.RaftStats
	status  cluster.Status
	counts  fsm.Counts
	etags   *raftlogv1.EtagRecord
	last    map[string]uint64
	names   []fsm.NamedIdentity
	tags    []fsm.NamedHiLo
	series  map[string]*series.Series
	pools   []fsm.NamedPool
	limits  map[string]float64
	room    disk.Room
	applied uint64
}

func (w *world) HasQuorum() bool              { return w.missing == 0 }
func (w *world) QuorumMissing() time.Duration { return w.missing }
func (w *world) Status() cluster.Status       { return w.status }
func (w *world) RaftStats() (cluster.RaftStats, bool) {
	if w.stats == nil {
		return cluster.RaftStats{}, false
	}
	return *w.stats, true
}
func (w *world) Counts() fsm.Counts                 { return w.counts }
func (w *world) Etags([]byte) *raftlogv1.EtagRecord { return w.etags }
func (w *world) Last() map[string]uint64            { return w.last }
func (w *world) Reserved() map[string]uint64        { return map[string]uint64{"shop": 65536} }
func (w *world) Databases() []string                { return []string{"empty", "shop"} }
func (w *world) LimitsUsed() map[string]float64     { return w.limits }
func (w *world) AppliedIndex() uint64               { return w.applied }
func (w *world) Room() disk.Room                    { return w.room }

func (w *world) SeriesList(db, _, after string, limit int) (page []fsm.NamedSeries) {
	for _, name := range slices.Sorted(maps.Keys(w.series)) {
		if db == "shop" && name > after && len(page) < limit {
			page = append(page, fsm.NamedSeries{Name: name})
		}
	}
	return page
}

func (w *world) ReadSeries(_, name string, read func(fsm.NamedSeries, *series.Series)) bool {
	if s := w.series[name]; s != nil {
		read(fsm.NamedSeries{Name: name}, s)
	}
	return w.series[name] != nil
}

func (w *world) Pools(db, _, after string, _ int, _ time.Time) []fsm.NamedPool {
	if db != "shop" || after != "" {
		return nil
	}
	return w.pools
}

func (w *world) Identities(db, _, after string, limit int) (page []fsm.NamedIdentity) {
	for _, i := range w.names {
		if db == "shop" && i.Name > after && len(page) < limit {
			page = append(page, i)
		}
	}
	return page
}

func (w *world) HiLos(db, _, after string, limit int) (page []fsm.NamedHiLo) {
	for _, h := range w.tags {
		if db == "shop" && h.Tag > after && len(page) < limit {
			page = append(page, h)
		}
	}
	return page
}

func (w *world) observed() *Metrics {
	m := New("")
	m.Observe(Sources{
		Cluster: w, State: w, Etags: w, HeldBytes: func() int64 { return 42 },
		Reserve: func() *reserve.Total {
			return &reserve.Total{Tags: 2, Numbers: 96, Lasts: 90 * time.Second, For: time.Minute}
		},
	})
	return m
}

// TestBeforeTheStart: a node that has no place in a cluster yet can be scraped.
func TestBeforeTheStart(t *testing.T) {
	m := (&world{missing: 90 * time.Second}).observed()
	want(t, m, map[string]string{
		`idnode_quorum_present`:                   "0",
		`idnode_quorum_missing_seconds`:           "90",
		`idnode_raft_term`:                        "",
		`idnode_state_entries{kind="identities"}`: "0",
	})
}

// aWorld is a node that leads others.
func aWorld() *world {
	return &world{
		stats: &cluster.RaftStats{
			State: "leader", Term: 3, LastIndex: 30, Commit: 29, Applied: 28, SnapshotIndex: 20, Pending: 2,
			Voters: 3, Nonvoters: 1,
		},
		status: cluster.Status{StorageFull: true, Members: []cluster.MemberStatus{
			{Member: &raftlogv1.Member{Tag: "A"}, Condition: &peerv1.PingResponse{AppliedIndex: 28}},
			{Member: &raftlogv1.Member{Tag: "B"}},
			{Member: &raftlogv1.Member{Tag: "C", Removed: true}},
		}},
		counts: fsm.Counts{Identities: 4, HiddenIdentities: 1, HiLos: 5, Claims: 6, Requests: 7, NameBytes: 800, Databases: 2},
		etags:  &raftlogv1.EtagRecord{Ceilings: []*raftlogv1.EtagCeiling{{Database: "shop", Ceiling: 1 << 20}}},
		last:   map[string]uint64{"shop": 17},
	}
}

func TestWhatIsRead(t *testing.T) {
	want(t, aWorld().observed(), map[string]string{
		`idnode_quorum_present`: "1", `idnode_quorum_missing_seconds`: "0", `idnode_storage_full`: "1",
		`idnode_raft_state{state="leader"}`: "1", `idnode_raft_state{state="follower"}`: "0",
		`idnode_raft_term`: "3", `idnode_raft_last_index`: "30", `idnode_raft_commit_index`: "29", `idnode_raft_applied_index`: "28",
		`idnode_raft_snapshot_index`: "20", `idnode_raft_fsm_pending`: "2",
		`idnode_raft_servers{suffrage="voter"}`: "3", `idnode_raft_servers{suffrage="nonvoter"}`: "1",
		`idnode_member_reachable{member="A"}`: "1", `idnode_member_reachable{member="B"}`: "0", `idnode_member_reachable{member="C"}`: "",
		`idnode_member_applied_index{member="A"}`: "28", `idnode_member_applied_index{member="B"}`: "",
		`idnode_state_entries{kind="identities"}`: "4", `idnode_state_entries{kind="hilo_counters"}`: "5",
		`idnode_state_entries{kind="claims"}`: "6", `idnode_state_entries{kind="request_ids"}`: "7", `idnode_state_name_bytes`: "800",
		`idnode_hilo_reserve_numbers`: "96", `idnode_hilo_reserve_seconds`: "90", `idnode_hilo_reserve_for_seconds`: "60",
		`idnode_etag_last{database="shop"}`: "17", `idnode_etag_reserved{database="shop"}`: "65536",
		`idnode_etag_ceiling{database="shop"}`: "1.048576e+06",
	})
}

// TestFullestCounter: it is found on whatever page it is, and forgotten when it
// is gone.
func TestFullestCounter(t *testing.T) {
	w := &world{last: map[string]uint64{"shop": 1 << 61, "empty": 1}}
	for i := range 3*surveyPage + 1 {
		w.names = append(w.names, fsm.NamedIdentity{Name: fmt.Sprintf("n%06d", i), Counter: identity.Counter{Last: int64(i)}})
		w.tags = append(w.tags, fsm.NamedHiLo{Tag: fmt.Sprintf("t%06d", i), Counter: hilo.Counter{Max: int64(i)}})
	}
	w.names[2*surveyPage].Last = 1 << 62
	w.tags[len(w.tags)-1].Max = 1 << 60
	m := w.observed()
	m.space.look(context.Background(), w)
	want(t, m, map[string]string{
		`idnode_counter_space_used_ratio{kind="identity"}`:    "0.5",
		`idnode_counter_space_used_ratio{kind="hilo"}`:        "0.125",
		`idnode_counter_space_used_ratio{kind="server_side"}`: "0.25",
	})
	w.names, w.tags = nil, nil
	m.space.look(context.Background(), w)
	want(t, m, map[string]string{`idnode_counter_space_used_ratio{kind="identity"}`: "0"})
}

// TestWhatIsUsedUp: of several, what ends first is told, and nothing where there is none.
func TestWhatIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := func(first int64) *series.Series {
			s, err := series.New(series.Definition{Format: "{number:2}"}, &raftlogv1.SeriesBegin{First: first})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		in := func(days int) time.Time { return time.Now().AddDate(0, 0, days) }
		ends := func(days int) fsm.NamedPool {
			layout := snowflake.Layout{Unit: 1000, TimeBits: 20, WorkerBits: 1, SequenceBits: 1}
			layout.Epoch = in(days).UnixMilli() - 1000<<20
			return fsm.NamedPool{Name: fmt.Sprint(days), Layout: layout}
		}
		w := &world{
			series: map[string]*series.Series{"a": begun(50), "b": begun(99), "c": begun(1)},
			pools:  []fsm.NamedPool{ends(300), ends(20), ends(700)}, limits: map[string]float64{"max-claims": 0.5},
			room: disk.Room{Bytes: 25, AllBytes: 100, Files: 5, AllFiles: 50}, applied: 10,
		}
		m := w.observed()
		m.space.look(t.Context(), w)
		want(t, m, map[string]string{
			`idnode_series_used_ratio{database="shop"}`: fmt.Sprint(98.0 / 99), `idnode_snowflake_pool_end_timestamp_seconds{database="shop"}`: fmt.Sprint(float64(in(20).Unix())),
			`idnode_series_used_ratio{database="empty"}`: "", `idnode_snowflake_pool_end_timestamp_seconds{database="empty"}`: "",
			`idnode_limit_used_ratio{limit="max-claims"}`: "0.5", `idnode_request_window_seconds`: "+Inf",
			`idnode_storage_used_ratio{of="bytes"}`: "0.75", `idnode_storage_used_ratio{of="inodes"}`: "0.9",
		})
		w.series, w.pools, w.room = nil, nil, disk.Room{Bytes: 50, AllBytes: 100}
		m.space.look(t.Context(), w)
		want(t, m, map[string]string{
			`idnode_series_used_ratio{database="shop"}`: "", `idnode_snowflake_pool_end_timestamp_seconds{database="shop"}`: "",
			`idnode_storage_used_ratio{of="bytes"}`: "0.5", `idnode_storage_used_ratio{of="inodes"}`: "",
		})
	})
}

// TestHowFarRequestIDsReachBack: no further than what was forgotten, and as far as the node has looked.
func TestHowFarRequestIDsReachBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.observed()
		for w.applied = 10; w.applied <= 100; w.applied += 10 {
			m.space.look(t.Context(), w)
			time.Sleep(surveyEvery)
		}
		for forgotten, seconds := range map[uint64]string{0: "+Inf", 10: "+Inf", 11: "540", 20: "540", 95: "60", 100: "60", 101: "0"} {
			w.counts.RequestsForgotten = forgotten
			want(t, m, map[string]string{`idnode_request_window_seconds`: seconds})
		}
		for range passedMost - 2 {
			m.space.look(t.Context(), w)
		}
		w.counts.RequestsForgotten = 95
		want(t, m, map[string]string{`idnode_request_window_seconds`: "60"})
		for range 2 {
			m.space.look(t.Context(), w)
		}
		want(t, m, map[string]string{`idnode_request_window_seconds`: "+Inf"})
		if looks := *m.space.passed.Load(); len(looks) != passedMost {
			t.Errorf("%d looks are remembered, want %d", len(looks), passedMost)
		}
	})
}

func anyHost(string) error { return nil }

// TestScrapesUnderForeignNames: a page that has its own name lead to the node reads no names
// of databases. Health has none.
func TestScrapesUnderForeignNames(t *testing.T) {
	mux := http.NewServeMux()
	names := func(*http.Request) bool { return true }
	checkHost := func(name string) error {
		if name == "a.example" {
			return nil
		}
		return errors.New("the node does not answer as " + name)
	}
	(&world{}).observed().Handle(mux.Handle, names, sameCaller, checkHost, Health{Alive: func() error { return nil }})
	for target, want := range map[string]int{
		"http://evil.example/metrics": 403, "http://a.example:7402/metrics": 200, "http://192.0.2.1:7402/metrics": 200,
		"http://a:7402/metrics": 403, "http://localhost/metrics": 200, "https://evil.example/metrics": 200, "http://evil.example/livez": 200,
	} {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		if w.Code != want || want == 403 && strings.Contains(w.Body.String(), "idnode_") {
			t.Errorf("%s: %d %.80q, want %d", target, w.Code, w.Body, want)
		}
	}
}

func TestHealth(t *testing.T) {
	var hangs, reason error
	var warnings []string
	mux := http.NewServeMux()
	New("").Handle(mux.Handle, nil, sameCaller, anyHost, Health{
		Alive: func() error { return hangs }, Ready: func() error { return reason }, Warnings: func() []string { return warnings },
	})
	for _, tc := range []struct {
		path          string
		hangs, reason error
		warnings      []string
		status        int
		body          string
	}{
		{"/livez", nil, nil, nil, 200, "alive\n"},
		{"/livez", nil, errors.New("no quorum"), nil, 200, "alive\n"},
		{"/livez", errors.New("raft stands still"), nil, nil, 503, "not alive: raft stands still\n"},
		{"/readyz", nil, nil, nil, 200, "ready\n"},
		{"/readyz", nil, nil, []string{"a foreign node", "another"}, 200, "ready\nwarning: a foreign node\nwarning: another\n"},
		{"/readyz", nil, errors.New("no quorum: nobody is there"), nil, 503, "not ready: no quorum: nobody is there\n"},
		{"/readyz", nil, errors.New("starting"), []string{"another list"}, 503, "not ready: starting\nwarning: another list\n"},
	} {
		hangs, reason, warnings = tc.hangs, tc.reason, tc.warnings
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, tc.path, nil))
		if w.Code != tc.status || w.Body.String() != tc.body {
			t.Errorf("%s with %v: %d %q", tc.path, tc.reason, w.Code, w.Body)
		}
	}
}

func TestBuildInfo(t *testing.T) {
	for series := range scrape(t, New("1.2.3")) {
		if strings.HasPrefix(series, "idnode_build_info{") && strings.Contains(series, `version="1.2.3"`) {
			return
		}
	}
	t.Error("the build is not told")
}

// BenchmarkCall is what metrics cost a call that takes one identity.
func BenchmarkCall(b *testing.B) {
	m := New("")
	m.Methods(map[string]grpc.ServiceInfo{"s": {Methods: []grpc.MethodInfo{{Name: "Get"}}}})
	e := m.Service()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Started("/s/Get")
			e.Issued("default", docid.Identity, 1)
			m.Handled("/s/Get", codes.OK, time.Millisecond)
		}
	})
}

// TestCertificates shows when they expire, and whether new ones are used.
func TestCertificates(t *testing.T) {
	m := New("test")
	m.Certificates(func() (own, ca time.Time) { return time.Unix(1_800_000_000, 0), time.Unix(1_600_000_000, 0) },
		func() int { return 2 })
	m.CertificatesRead(nil)
	m.CertificatesRead(nil)
	m.CertificatesRead(errors.New("no PEM"))
	want(t, m, map[string]string{
		`idnode_tls_reloads_total{result="ok"}`: "2", `idnode_tls_reloads_total{result="failed"}`: "1", `idnode_tls_ended_cas`: "2",
		`idnode_tls_certificate_expiry_timestamp_seconds{certificate="own"}`: "1.8e+09",
		`idnode_tls_certificate_expiry_timestamp_seconds{certificate="ca"}`:  "1.6e+09",
	})
}
