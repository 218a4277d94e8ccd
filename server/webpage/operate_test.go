package webpage

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/backup"
	"github.com/idnode/idnode/fsm/op"
	peerv1 "github.com/idnode/idnode/proto/peer/v1"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
	"github.com/idnode/idnode/server/httpapi"
	keeper "github.com/idnode/idnode/server/reserve"
	"github.com/idnode/idnode/server/service"
)

// TestAlarms: what is wrong with the cluster is told, the worst first, and nothing of
// a sound one.
func TestAlarms(t *testing.T) {
	const sound = `[]`
	condition := func(change func(*service.Condition)) func(*service.ClusterStatus) {
		return func(s *service.ClusterStatus) {
			c := s.Conditions["B"]
			change(&c)
			s.Conditions["B"] = c
		}
	}
	ends := func(in time.Duration) func(*service.ClusterStatus) {
		return condition(func(c *service.Condition) { c.Answer.CertificateEnds = time.Now().Add(in + time.Hour).Unix() })
	}
	const day = 24 * time.Hour
	tests := map[string]struct {
		change func(*service.ClusterStatus)
		want   string
	}{
		"a sound cluster": {nil, sound},
		"no leader":       {func(s *service.ClusterStatus) { s.LeaderTag = "" }, `[{"name":"IdnodeNoLeader","critical":true}]`},
		"a silent member": {
			func(s *service.ClusterStatus) { s.Conditions["C"] = service.Condition{SilentFor: time.Minute} },
			`[{"name":"IdnodeMemberUnreachable","critical":false,"title":"Member C does not answer.","millis":60000}]`,
		},
		"a full disk": {
			condition(func(c *service.Condition) { c.Answer.StorageFull = true }),
			`[{"name":"IdnodeStorageFull","critical":false,"title":"A disk is nearly full: B."}]`,
		},
		"the leader's disk": {
			func(s *service.ClusterStatus) { s.Conditions["A"].Answer.StorageFull = true },
			`[{"name":"IdnodeStorageFull","critical":true,"title":"A disk is nearly full: A."}]`,
		},
		"another state": {
			condition(func(c *service.Condition) { c.StateDiffers = true }),
			`[{"name":"IdnodeStateDiverged","critical":true,"title":"Another state on B."}]`,
		},
		"a member that lags": {func(s *service.ClusterStatus) {
			s.Conditions["A"] = service.Condition{Answer: &peerv1.PingResponse{AppliedIndex: 9000}}
		}, `[{"name":"IdnodeLagging"}]`},
		"a certificate":         {ends(20 * day), sound},
		"an old certificate":    {ends(3 * day), `[{"name":"IdnodeCertificateEnds","critical":false,"title":"The certificate of member B ends within 4 days."}]`},
		"an ended certificate":  {ends(-3 * day), `[{"name":"IdnodeCertificateEndsNow","critical":true,"title":"The certificate of member B has ended."}]`},
		"a wrong list of peers": {func(s *service.ClusterStatus) { s.Warnings = []string{"the lists differ"} }, `[{"name":"","text":"the lists differ"}]`},
		"two things": {
			func(s *service.ClusterStatus) {
				s.HasQuorum, s.Conditions["B"] = false, service.Condition{SilentFor: time.Second}
			},
			`[{"name":"IdnodeNoQuorum","critical":true},{"name":"IdnodeMemberUnreachable"}]`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.change = tt.change
			wantJSON(t, send(w.newServer(httpapi.Config{}), get, api+"overview", ""), 200, `{"alarms":`+tt.want+`}`)
		})
	}
}

// TestAReserveThatRunsShort is an alarm from half of what was asked for on.
func TestAReserveThatRunsShort(t *testing.T) {
	for lasts, want := range map[time.Duration]string{
		5 * time.Minute: `[]`,
		4 * time.Minute: `[{"name":"IdnodeReserveShort","critical":false,"title":"The reserve of HiLo ranges runs short."}]`,
	} {
		w := newWorld(t)
		w.reserve = &keeper.Total{Tags: 1, Numbers: 32, Lasts: lasts, For: 10 * time.Minute}
		wantJSON(t, send(w.newServer(httpapi.Config{}), get, api+"overview", ""), 200,
			fmt.Sprintf(`{"alarms":%s,"reserve":{"Tags":1,"Numbers":32,"Lasts":%d}}`, want, lasts))
	}
}

// TestAlarmsHaveTheNamesOfTheRules: whoever was woken by an alert finds it on the page.
func TestAlarmsHaveTheNamesOfTheRules(t *testing.T) {
	rules, err := os.ReadFile(filepath.Join("..", "..", "deploy", "prometheus", "idnode-alerts.yml"))
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("alarms.go")
	if err != nil {
		t.Fatal(err)
	}
	runbook, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", "alarms.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`Name(?:: +|, a.Critical = )"(\w+)"`).FindAllStringSubmatch(string(source), -1)
	if len(names) < 5 {
		t.Errorf("%d names were found", len(names))
	}
	for _, name := range names {
		if !strings.Contains(string(rules), "alert: "+name[1]+"\n") || !strings.Contains(string(runbook), "\n### "+name[1]+"\n") {
			t.Errorf("no rule, or no heading of alarms.md, is named %s", name[1])
		}
	}
}

// TestWhatCannotWork: of each member the page hears why leadership cannot be transferred to it,
// its vote be changed, or it be removed.
func TestWhatCannotWork(t *testing.T) {
	const (
		answers  = `It answers. Only a member that is gone is removed here; for others there is: idnode cluster remove.`
		noQuorum = "There is no quorum."
	)
	noRights := [3]string{noClusterRight, noClusterRight, noClusterRight}
	tests := map[string]struct {
		change func(*world)
		// want has what cannot be done with A, B and C: the transfer, the change of the vote, the removal.
		want [3][3]string
	}{
		"all is well": {func(*world) {}, [3][3]string{{"It leads.", "", answers}, {"", "", answers}, {"It does not answer.", "", ""}}},
		"no right":    {func(w *world) { w.admins = []string{"ops"} }, [3][3]string{noRights, noRights, noRights}},
		"no quorum": {(*world).loseQuorum, [3][3]string{
			{noQuorum, noQuorum, answers}, {noQuorum, noQuorum, answers}, {noQuorum, noQuorum, noQuorum},
		}},
		"no room": {func(w *world) {
			w.change = func(s *service.ClusterStatus) {
				s.Conditions["B"] = service.Condition{Answer: &peerv1.PingResponse{StorageFull: true}}
			}
		}, [3][3]string{{"It leads.", "", answers}, {"Its disk is nearly full.", "", answers}, {"It does not answer.", "", ""}}},
		"no vote": {func(w *world) {
			w.change = func(s *service.ClusterStatus) { s.VoterTags = []string{"A", "C"} }
		}, [3][3]string{{"It leads.", "", answers}, {"It does not vote.", "", answers}, {"It does not answer.", "", ""}}},
		"one vote": {func(w *world) {
			w.change = func(s *service.ClusterStatus) { s.VoterTags = []string{"A"} }
		}, [3][3]string{{"It leads.", "It is the last voter.", answers}, {"It does not vote.", "", answers}, {"It does not vote.", "", ""}}},
		"watchers": {func(w *world) {
			w.Must(op.Envelope{}, &raftlogv1.WatcherSet{Tag: "B", Watcher: true})
			w.Must(op.Envelope{}, &raftlogv1.WatcherSet{Tag: "C", Watcher: true})
		}, [3][3]string{
			{"It leads.", "It is the last voter.", answers}, {"It does not vote.", "", answers}, {"It does not vote.", "It does not answer.", ""},
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tt.change(w)
			var want []string
			for _, m := range tt.want {
				want = append(want, fmt.Sprintf(`{"no_transfer":%q,"no_vote_change":%q,"no_removal":%q}`, m[0], m[1], m[2]))
			}
			wantJSON(t, send(w.newServer(httpapi.Config{}), get, api+"overview", ""), 200, `{"members":[`+strings.Join(want, ",")+`]}`)
		})
	}
}

// TestBackup: what is downloaded is a backup file, to its last byte.
func TestBackup(t *testing.T) {
	w := newWorld(t)
	s := w.newServer(httpapi.Config{})
	w.seed("invoices", 7)
	answer := send(s, post, api+"backup", `{}`)
	if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "application/octet-stream" {
		t.Errorf("%d %v", answer.Code, answer.Header())
	}
	wantHeaders(t, "backup", answer.Header())
	file, err := backup.NewReader(bytes.NewReader(answer.Body.Bytes()))
	if err != nil || file.Header().GetLogIndex() != w.Index() {
		t.Fatalf("%v, %v", file.Header(), err)
	}
	for err == nil {
		_, err = file.Next()
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	w.loseQuorum()
	wantJSON(t, send(s, post, api+"backup", `{}`), 503, `{"reason":"NO_QUORUM"}`)
	if answer := send(s, post, api+"backup", `{"consistency":"CONSISTENCY_STALE"}`); answer.Code != http.StatusOK || answer.Body.Len() == 0 {
		t.Errorf("without a quorum: %d", answer.Code)
	}
}

// timedWriter is a connection whose deadlines can be set.
type timedWriter struct {
	*httptest.ResponseRecorder
	// pieces are those written, each with its deadline.
	pieces    []time.Duration
	remaining time.Duration
}

// SetWriteDeadline is for http.ResponseController.
func (w *timedWriter) SetWriteDeadline(at time.Time) error {
	w.remaining = time.Until(at)
	return nil
}

func (w *timedWriter) Write(b []byte) (int, error) {
	w.pieces, w.remaining = append(w.pieces, w.remaining), 0
	return w.ResponseRecorder.Write(b)
}

// TestAStalledDownloadIsGivenUp: its reader has a time for each piece, so that a long
// backup takes as long as it takes, and a reader who stops does not hold it.
func TestAStalledDownloadIsGivenUp(t *testing.T) {
	w := newWorld(t)
	s := w.newServer(httpapi.Config{})
	for i := range 100 {
		w.seed(fmt.Sprint(i, strings.Repeat("x", 1990)), 1)
	}
	r := httptest.NewRequest(post, "http://127.0.0.1:7402"+api+"backup", strings.NewReader(`{}`))
	r.Header.Set("Content-Type", "application/json")
	answer := &timedWriter{ResponseRecorder: httptest.NewRecorder()}
	s.ServeHTTP(answer, r)
	if len(answer.pieces) < 3 || answer.Body.Len() < 200_000 {
		t.Errorf("%d bytes in %d pieces", answer.Body.Len(), len(answer.pieces))
	}
	for i, left := range answer.pieces {
		if left <= 0 || left > pieceTime {
			t.Errorf("piece %d has %s", i, left)
		}
	}
}

// brokenWriter is a connection that breaks after some bytes.
type brokenWriter struct {
	*httptest.ResponseRecorder
	left int
}

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errors.New("the connection is gone")
	}
	return w.ResponseRecorder.Write(b)
}

// TestABackupThatBreaksOffNeverLooksWhole: its connection ends without the end of the
// answer.
func TestABackupThatBreaksOffNeverLooksWhole(t *testing.T) {
	w := newWorld(t)
	s := w.newServer(httpapi.Config{})
	r := httptest.NewRequest(post, "http://127.0.0.1:7402"+api+"backup", strings.NewReader(`{}`))
	r.Header.Set("Content-Type", "application/json")
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("it ended with %v", got)
		}
	}()
	s.ServeHTTP(&brokenWriter{httptest.NewRecorder(), 10}, r)
}
