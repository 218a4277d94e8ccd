package node

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/idnode/idnode/client/idnodev1"
)

// Where the files for operators are.
const (
	alertsFile    = "../../deploy/prometheus/idnode-alerts.yml"
	dashboardFile = "../../deploy/grafana/idnode.json"
	alarmsPage    = "../../docs/operate/alarms.md"
	metricsPage   = "../../docs/operate/metrics.md"
)

// alertTests are the files of promtool's tests of the rules, beside alertsFile.
var alertTests = []string{"idnode-alerts-test.yml", "idnode-alerts-hours-test.yml", "idnode-alerts-days-test.yml"}

// rules is the part of a file of alert rules that is used here. A key that is not
// in it is a slip.
type rules struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr         string
			For                 string
			Labels, Annotations map[string]string
		}
	}
}

func readRules(t *testing.T) rules {
	t.Helper()
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var r rules
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&r); err != nil {
		t.Fatal(err)
	}
	return r
}

// dashboardExpressions returns all expressions in the dashboard, by panel.
func dashboardExpressions(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			all[p.Title] = append(all[p.Title], target.Expr)
		}
		if p.Type != "row" && len(all[p.Title]) == 0 {
			t.Errorf("the panel %q shows nothing", p.Title)
		}
	}
	return all
}

var (
	// metricNames are the names that nobody else's metrics begin with.
	metricNames = regexp.MustCompile(`\b(?:idnode|grpc_server|process|go)_[a-z0-9_]+`)
	// selectors are the labels and values of a metric in braces.
	selectors = regexp.MustCompile(`\{[^{}]*\}`)
	literals  = regexp.MustCompile(`"[^"]*"`)
)

// namesIn returns the metrics in an expression.
func namesIn(expression string) []string {
	return metricNames.FindAllString(selectors.ReplaceAllString(expression, ""), -1)
}

// checkExpression notes what is certainly no expression.
func checkExpression(t *testing.T, where, expression string) {
	t.Helper()
	var open []rune
	closes := map[rune]rune{')': '(', ']': '[', '}': '{'}
	for _, c := range literals.ReplaceAllString(expression, "") {
		switch c {
		case '(', '[', '{':
			open = append(open, c)
		case ')', ']', '}':
			if len(open) == 0 || open[len(open)-1] != closes[c] {
				t.Fatalf("%s: %s: %q closes nothing", where, expression, c)
			}
			open = open[:len(open)-1]
		case '"':
			t.Fatalf("%s: %s: a text has no end", where, expression)
		}
	}
	if len(open) > 0 {
		t.Errorf("%s: %s: %q is not closed", where, expression, open)
	}
}

// defineWhatEnds makes a series and a pool.
func (r *running) defineWhatEnds() {
	r.t.Helper()
	_, err := r.service.DefineSeries(r.t.Context(), &idnodev1.DefineSeriesRequest{
		Name: "bills", Definition: &idnodev1.SeriesDefinition{Format: "{number}"},
	})
	if err == nil {
		_, err = r.service.DefinePool(r.t.Context(), &idnodev1.DefinePoolRequest{Name: "orders", LayoutName: "javascript"})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestDeployedNamesExist: the names in the dashboard and the alerts are in a scrape of a node
// that has served calls.
func TestDeployedNamesExist(t *testing.T) {
	t.Parallel()
	n := run(t, configs(t, "A")["A"])
	n.ready()
	n.generate("users/", 1)
	n.generate("users|", 1)
	if status, _ := n.get("/databases/default/identity/next?name=users"); status == 0 {
		t.Fatal("no answer")
	}
	// Metrics of calls that this test does not make.
	n.metrics.Exchanged("/idnode.v1.IdsService/Claim", 0)
	n.metrics.Handled("/idnode.v1.IdsService/Generate", 0, time.Millisecond)
	n.metrics.Service().Refused("QUOTA")
	n.defineWhatEnds()
	go n.metrics.Survey(t.Context(), n.state)
	n.until("a look at what ends", func() bool { return n.scrape()[`idnode_snowflake_pool_end_timestamp_seconds{database="default"}`] > 0 })
	n.metrics.Certificates(func() (own, ca time.Time) { return time.Now(), time.Now() }, func() int { return 0 }) // It has no TLS.
	// The ceiling is raised beside the calls.
	n.until("a ceiling", func() bool { return n.scrape()[`idnode_etag_ceiling{database="default"}`] > 0 })
	there := map[string]bool{}
	for series := range n.scrape() {
		name, _, _ := strings.Cut(series, "{")
		there[name] = true
	}
	expressions := dashboardExpressions(t)
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			expressions["alert "+r.Alert] = []string{r.Expr}
		}
	}
	for _, where := range slices.Sorted(maps.Keys(expressions)) {
		for _, expression := range expressions[where] {
			checkExpression(t, where, expression)
			for _, name := range namesIn(expression) {
				if !there[name] {
					t.Errorf("%s: there is no %s", where, name)
				}
			}
		}
	}
	shown := map[string]bool{}
	for _, list := range expressions {
		for _, expression := range list {
			for _, name := range namesIn(expression) {
				shown[regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")] = true
			}
		}
	}
	if !shown["idnode_log_write_seconds"] || !shown["idnode_ids_issued_total"] {
		t.Errorf("names are not found in expressions: %v", shown)
	}
	board := fmt.Sprint(dashboardExpressions(t))
	for _, name := range []string{"idnode_tls_certificate_expiry_timestamp_seconds", "idnode_state_differences_total"} {
		if !strings.Contains(board, name) {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}

// TestAlertRules: each has a name of its own, a severity, a summary and a place in
// the documentation.
func TestAlertRules(t *testing.T) {
	manual, err := os.ReadFile(alarmsPage)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			if seen[r.Alert] || !strings.HasPrefix(r.Alert, "Idnode") || r.Expr == "" {
				t.Errorf("%q is no alert of its own", r.Alert)
			}
			seen[r.Alert] = true
			if s := r.Labels["severity"]; s != "warning" && s != "critical" {
				t.Errorf("%s has the severity %q", r.Alert, s)
			}
			if r.Annotations["summary"] == "" {
				t.Errorf("%s has no summary", r.Alert)
			}
			if _, err := time.ParseDuration(r.For); r.For != "" && err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
			if all := strings.Count(r.Expr, "by (") + strings.Count(r.Expr, " on ("); all != strings.Count(r.Expr, "(job, namespace") {
				t.Errorf("%s does not tell clusters apart: %s", r.Alert, r.Expr)
			}
			place := "/docs/operate/alarms.md#" + strings.ToLower(r.Alert)
			explained := regexp.MustCompile(`\n### ` + r.Alert + `\n\n[^#\n]`)
			url := r.Annotations["runbook_url"]
			if !strings.HasSuffix(url, place) || !strings.Contains(url, "http://{{") || !explained.Match(manual) {
				t.Errorf("%s is not explained in docs/operate/alarms.md, at %q", r.Alert, url)
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d alerts were read", len(seen))
	}
}

// promtool runs Prometheus' own checker in the folder of the rules.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip("promtool is not there (Debian: apt-get install prometheus): the rules are checked by name only")
	}
	cmd := exec.Command("promtool", args...)
	cmd.Dir = filepath.Dir(alertsFile)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %v: %v\n%s", args, err, out)
	}
}

// TestAlertsByPromtool: the rules are valid, and each fires when it must and not otherwise, as
// the files of alertTests say.
func TestAlertsByPromtool(t *testing.T) {
	t.Parallel()
	promtool(t, "check", "rules", filepath.Base(alertsFile))
	promtool(t, append([]string{"test", "rules"}, alertTests...)...)
}

// TestEveryAlertIsTried: each alert is in alertTests, once firing and once silent.
func TestEveryAlertIsTried(t *testing.T) {
	var text []byte
	for _, name := range alertTests {
		cases, err := os.ReadFile(filepath.Join(filepath.Dir(alertsFile), name))
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, cases...)
	}
	for _, g := range readRules(t).Groups {
		for _, r := range g.Rules {
			for _, form := range []string{`alertname: ` + r.Alert + `\}`, `alertname: ` + r.Alert + `\n +exp_alerts`} {
				if !regexp.MustCompile(form).Match(text) {
					t.Errorf("%s is not tried: %s", r.Alert, form)
				}
			}
		}
	}
}

// TestDashboardByPromtool: each expression of the dashboard can be read, as a
// rule that records it.
func TestDashboardByPromtool(t *testing.T) {
	type record struct{ Record, Expr string }
	var records []record
	fill := strings.NewReplacer("$__rate_interval", "1m", "$job", "idnode", "$namespace", ".*", "$__all", ".*")
	for _, list := range dashboardExpressions(t) {
		for _, expression := range list {
			if strings.Count(expression, `job=~"$job"`) != strings.Count(expression, `job=~"$job",namespace=~"$namespace"`) {
				t.Errorf("the dashboard shows all clusters at once: %s", expression)
			}
			records = append(records, record{fmt.Sprintf("idnode:%d", len(records)), fill.Replace(expression)})
		}
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": records}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// TestEveryMetricIsDocumented: docs/operate/metrics.md names each metric of ours.
func TestEveryMetricIsDocumented(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	n := run(t, configs(t, "A")["A"])
	n.ready()
	_, text := n.get("/metrics")
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (idnode_\S+)`).FindAllStringSubmatch(text, -1) {
		if !bytes.Contains(manual, []byte("`"+line[1]+"`")) {
			t.Errorf("%s is not in docs/operate/metrics.md", line[1])
		}
	}
}
