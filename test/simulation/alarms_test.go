package simulation

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/idnode/idnode/client/idnodev1"
	"github.com/idnode/idnode/test/history"
)

// httpPort is served by nodes whose plan says so.
const httpPort = ":7402"

// words is what a node tells people about itself and its cluster at one moment.
type words struct {
	// ready is the answer of /readyz, alarms are those of the page, by their names.
	ready    string
	alarms   map[string][]string
	warnings []string
}

// all are the texts, one line each.
func (m words) all() []string {
	lines := append(strings.Split(strings.TrimSpace(m.ready), "\n"), m.warnings...)
	for _, texts := range m.alarms {
		lines = append(lines, texts...)
	}
	return lines
}

func (m words) says(what string) bool {
	for _, line := range m.all() {
		if strings.Contains(line, what) {
			return true
		}
	}
	return false
}

// ask asks a node over HTTP and gRPC.
func (c *client) ask(t *testing.T, s *server) words {
	t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
		return c.port.DialContext(ctx, address)
	}}
	get := func(path string) string {
		res, err := (&http.Client{Transport: transport}).Get("http://" + s.address() + httpPort + path)
		if err != nil {
			t.Fatalf("node %s: %v", s.host, err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("node %s: %v", s.host, err)
		}
		return string(body)
	}
	var page struct {
		Alarms []struct{ Name, Title, Text string }
	}
	if err := json.Unmarshal([]byte(get("/page/api/overview")), &page); err != nil {
		t.Fatal(err)
	}
	m := words{ready: get("/readyz"), alarms: map[string][]string{}, warnings: c.status(t, s).GetWarnings()}
	for _, a := range page.Alarms {
		m.alarms[a.Name] = append(m.alarms[a.Name], a.Title+" "+a.Text)
	}
	return m
}

// calls makes a call of each kind at a node, and returns the reasons of those that are refused.
func (c *client) calls(ctx context.Context, s *server) map[string]string {
	refused := map[string]string{}
	for kind, do := range map[string]call{
		"identity": c.next,
		"range": func(ctx context.Context, s *server, _ *history.Op) error {
			_, err := c.ids(s).NextRange(ctx, &idnodev1.NextRangeRequest{Tag: "alarms"})
			return err
		},
		"claim": func(ctx context.Context, s *server, _ *history.Op) error {
			id := "alarms/" + time.Now().Format(time.RFC3339Nano)
			_, err := c.ids(s).Generate(ctx, &idnodev1.GenerateRequest{Template: id, Claim: true, Count: 1})
			return err
		},
		"server-side": func(ctx context.Context, s *server, _ *history.Op) error {
			_, err := c.ids(s).Generate(ctx, &idnodev1.GenerateRequest{Template: "alarms/", Count: 1})
			return err
		},
		"GUID": func(ctx context.Context, s *server, _ *history.Op) error {
			_, err := c.ids(s).Generate(ctx, &idnodev1.GenerateRequest{Count: 1})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
		op := history.Op{Kind: history.Other}
		if kind == "identity" {
			op = history.Op{Kind: history.Next, Name: "orders", Count: 1}
		}
		if got := c.onceWithin(ctx, s, op, do); got.Outcome != history.OK {
			refused[kind] = got.Code
		}
		cancel()
	}
	return refused
}

// foreign are words that nobody who is woken at night has to know.
var foreign = regexp.MustCompile(`desc =|connection error|transport:|while dialing|rpc error|` + codes.Unavailable.String() + `:`)

// saysRefused is how a text says that identities, ranges and claims are refused at the node that is asked.
var saysRefused = regexp.MustCompile(`identities, [^;.]*are refused(?: with ([A-Z_]+))?|It refuses identities`)

// TestWhatIsToldIsTrue compares what each node tells in each state of a cluster, as alarms of the page, as
// readiness and as warnings, with what calls get there at that moment.
func TestWhatIsToldIsTrue(t *testing.T) {
	full := func(nodes ...*server) {
		for _, s := range nodes {
			s.disk.change(func(f *diskFaults) { f.full = true })
		}
	}
	for _, tt := range []struct {
		name string
		// enter makes the state, and returns the nodes that are down then.
		enter func(w *world, leader *server, others []*server) (down []*server)
		// alarms are those of each node that is up, or of the first follower alone, and reason that of a refused identity there.
		alarms string
		first  bool
		reason string
	}{
		{"all are up", func(*world, *server, []*server) []*server { return nil }, "", false, ""},
		{"one is down", func(_ *world, _ *server, others []*server) []*server { return others[:1] }, "IdnodeMemberUnreachable", false, ""},
		{
			"the leader is down", func(_ *world, leader *server, _ []*server) []*server { return []*server{leader} },
			"IdnodeMemberUnreachable", false, "",
		},
		{
			"no quorum", func(_ *world, leader *server, others []*server) []*server { return []*server{leader, others[0]} },
			"IdnodeMemberUnreachable IdnodeNoQuorum", false, "NO_QUORUM",
		},
		{"a follower is full", func(_ *world, _ *server, others []*server) []*server {
			full(others[0])
			return nil
		}, "IdnodeStorageFull", false, ""},
		{"the leader is full", func(_ *world, leader *server, _ []*server) []*server {
			full(leader)
			return nil
		}, "IdnodeStorageFull", false, ""},
		{"a majority is full", func(_ *world, _ *server, others []*server) []*server {
			full(others...)
			return nil
		}, "IdnodeStorageFull", false, "STORAGE_FULL"},
		{"one is full and one down", func(_ *world, _ *server, others []*server) []*server {
			full(others[0])
			return others[1:]
		}, "IdnodeMemberUnreachable IdnodeStorageFull", false, ""},
		{"the leader is not reached", func(w *world, leader *server, others []*server) []*server {
			ports := []string{grpcPort, raftPort}
			ways := append(portsOf(leader, others[:1], ports, true, true), portsOf(others[0], []*server{leader}, ports, true, true)...)
			w.network.setClosed(ways, true)
			return nil
		}, "IdnodeLogNotServed IdnodeMemberUnreachable", true, "LEADER_UNREACHABLE"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := sizedPlan(3)
			p.http = true
			inClusterOf(t, p, func(w *world, c *client) {
				leader := c.leader(t)
				others := w.othersThan(leader)
				down := tt.enter(w, leader, others)
				for _, s := range down {
					defer s.hold()()
					s.current().kill(false)
				}
				time.Sleep(settling)
				up := slices.DeleteFunc(slices.Clone(w.founders()), func(s *server) bool { return slices.Contains(down, s) })
				if tt.first {
					up = others[:1]
				}
				for _, s := range up {
					is, refused := c.ask(t, s), c.calls(w.ctx, s)
					c.judge(t, s, is, refused, down)
					if got := alarmNames(is); got != tt.alarms || refused["identity"] != tt.reason {
						t.Errorf("node %s: alarms %q, want %q; an identity ends with %q, want %q", s.host, got, tt.alarms,
							refused["identity"], tt.reason)
					}
				}
				c.removes(t, w, up[0], down)
			})
		})
	}
}

func alarmNames(m words) string {
	var names []string
	for name := range m.alarms {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// judge compares what a node tells with what its calls got.
func (c *client) judge(t *testing.T, s *server, is words, refused map[string]string, down []*server) {
	t.Helper()
	for _, line := range is.all() {
		if foreign.MatchString(line) || strings.Contains(line, "\n") {
			t.Errorf("node %s says %q", s.host, line)
		}
		says := saysRefused.FindStringSubmatch(line)
		if says == nil {
			continue
		}
		for _, kind := range []string{"identity", "range", "claim"} {
			if got := refused[kind]; got == "" || says[1] != "" && got != says[1] {
				t.Errorf("node %s says %q, and a call for an %s ends with %q", s.host, line, kind, got)
			}
		}
	}
	if is.says("server-side ids and GUIDs go on") && (refused["server-side"] != "" || refused["GUID"] != "") {
		t.Errorf("node %s says that server-side ids go on: %v", s.host, refused)
	}
	if is.says("no call is refused for that") && refused["identity"] == "STORAGE_FULL" {
		t.Errorf("node %s says that no call is refused for a full disk: %v", s.host, refused)
	}
	ready := strings.HasPrefix(is.ready, "ready")
	text, stops := strings.Join(is.all(), "\n"), refused["identity"] != ""
	if stops && !saysRefused.MatchString(text) || ready == (stops && refused["identity"] != "STORAGE_FULL") {
		t.Errorf("node %s: refused %v, and it says\n%s", s.host, refused, text)
	}
	for _, dead := range down {
		named := func(lines []string) int {
			return strings.Count(strings.ToLower(strings.Join(lines, "\n")), "member "+strings.ToLower(dead.tag())+" ")
		}
		alarms := named(is.alarms["IdnodeMemberUnreachable"])
		if others := named(is.alarms[""]) + named(is.alarms["IdnodeNoQuorum"]); alarms != 1 || others != 0 || named(is.warnings) > 1 {
			t.Errorf("node %s names %s in %d alarms and %d others:\n%s", s.host, dead.tag(), alarms, others, strings.Join(is.all(), "\n"))
		}
	}
}

// removes does what the texts advise for members that are down, if they advise it.
func (c *client) removes(t *testing.T, w *world, asked *server, down []*server) {
	t.Helper()
	if !c.ask(t, asked).says("remove it") {
		return
	}
	ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
	defer cancel()
	for _, s := range down {
		s.left.Store(true)
		if _, err := c.cluster(asked).RemoveMember(ctx, &idnodev1.RemoveMemberRequest{Tag: s.tag()}); err != nil {
			t.Errorf("the texts of node %s advise to remove %s: %v", asked.host, s.tag(), err)
		}
	}
	if len(down) == 0 {
		t.Errorf("the texts of node %s advise to remove a member, and all are up", asked.host)
	}
}
