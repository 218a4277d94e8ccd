package e2e

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/idnode/idnode/test/e2e/harness"
	"github.com/idnode/idnode/test/tier"
)

// TestAWayOutOfAMistake walks by command line, at one node after the other: a series is
// tried, begun in the wrong format, redefined, deleted, and begun behind another program's
// numbers. Once a number is final it stays, and a wrong date does not end it. The same calls
// are refused as JSON over HTTP.
func TestAWayOutOfAMistake(t *testing.T) {
	tier.Long(t)
	c := harness.StartCluster(t, harness.Config{})
	w := &walk{c: c}
	day := func(days int) string { return time.Now().UTC().AddDate(0, 0, days).Format(time.DateOnly) }
	today, tomorrow := day(0), day(1)

	w.does(t, "define invoices --format {branch}/{number:3} --dry-run",
		"texts         BRANCH/001, BRANCH/002\nvalues        branch\nbegins again  never\n")
	w.fails(t, "show invoices", "SERIES_NOT_FOUND")
	w.does(t, "define invoices --format {branch}/{number:3}", "1\n")
	w.does(t, "take invoices --key a --value branch=ULM", "ULM/001\n")
	w.does(t, "define invoices --format INV-{number:4} --expected-version 1 --dry-run",
		"texts         INV-0001, INV-0002\nbegins again  never\nforgets       1 open numbers\n")
	w.does(t, "define invoices --format INV-{number:4} --expected-version 1", "2\n")
	w.does(t, "take invoices --key a", "INV-0001\n")
	w.fails(t, "delete invoices --expected-version 2", "forgets its 1 open numbers")
	w.does(t, "delete invoices --expected-version 2 --yes", "invoices deleted\n")

	const ordered = "define invoices --format INV-{number:4} --order dates-do-not-go-back"
	w.does(t, ordered+" --begin -=543", "1\n")
	w.does(t, "take invoices --key a --date "+today, "INV-0543\n")
	w.does(t, "confirm invoices --key a", "INV-0543\tconfirmed\ta\t"+today+"\t\n")
	if got := strings.Fields(w.run(t, "report invoices").out); !strings.HasSuffix(strings.Join(got, " "),
		"- 543 "+today+" 542 0 0 1 0 0 0 9456 no") {
		t.Errorf("reported %q", got)
	}
	w.does(t, "verify invoices", "ok\n")
	w.fails(t, "define invoices --format X-{number:4} --order dates-do-not-go-back --expected-version 1", "INVALID_SERIES")
	w.fails(t, ordered+" --begin -=7 --expected-version 1", "INVALID_SERIES")
	w.fails(t, "delete invoices --expected-version 1 --yes", "SERIES_IN_USE")

	w.fails(t, "take invoices --key b --date 2062-11-26", "2062-11-26")
	w.does(t, "take invoices --key b --date "+tomorrow, "INV-0544\n")
	w.fails(t, "take invoices --key c --date "+today, "DATE_GOES_BACK")
	w.does(t, "void invoices --key b --reason typed --yes", "INV-0544\tvoided\tb\t"+tomorrow+"\ttyped\n")
	w.does(t, "take invoices --key c --date "+today, "INV-0545\n")

	for method, want := range map[string]string{
		`DefineSeries {"name":"invoices","definition":{"format":"X-{number}"},"expectedVersion":"1","dryRun":true}`:   "INVALID_SERIES",
		`DefineSeries {"name":"more","definition":{"format":"M-{number}"},"begins":[{"first":"9"}],"dryRun":true}`:    `"texts":["M-9","M-10"]`,
		`DefineSeries {"name":"more","definition":{"format":"{number}","maxAheadDays":4000},"dryRun":true}`:           "definition.max_ahead_days",
		`DeleteSeries {"name":"invoices","expectedVersion":"1"}`:                                                      "SERIES_IN_USE",
		`TakeNumbers {"series":"invoices","keys":["d"],"date":"2062-11-26"}`:                                          "INVALID_SERIES",
		`TakeNumbers {"series":"invoices","keys":["d"],"expiresIn":"0.000000001s"}`:                                   "expires_in",
		`DefineSeries {"name":"more","definition":{"format":"M-{number}"},"begins":[{"scope":["2026"],"first":"9"}]}`: "begins",
	} {
		if got := w.post(t, method); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", method, got, want)
		}
	}
	w.fails(t, "show more", "SERIES_NOT_FOUND")
	w.does(t, "verify invoices", "ok\n")
}

// walk runs commands at the nodes in turn.
type walk struct {
	c *harness.Cluster
	n int
}

type printed struct{ out, err string }

func (w *walk) node() *harness.Node {
	w.n++
	return w.c.Nodes[w.n%len(w.c.Nodes)]
}

func (w *walk) run(t *testing.T, line string) printed {
	t.Helper()
	cmd := harness.Command(t, append(append([]string{"series"}, strings.Fields(line)...), "--endpoint", w.node().GRPC)...)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	_ = cmd.Run() // What it prints says how it ended.
	return printed{out.String(), err.String()}
}

func (w *walk) does(t *testing.T, line, want string) {
	t.Helper()
	if got := w.run(t, line); got.out != want {
		t.Fatalf("%s: %+v, want %q", line, got, want)
	}
}

func (w *walk) fails(t *testing.T, line, why string) {
	t.Helper()
	if got := w.run(t, line); got.out != "" || !strings.Contains(got.err, why) {
		t.Fatalf("%s: %+v, want %q", line, got, why)
	}
}

// post makes a call as JSON over HTTP, and returns what comes without its spaces: the
// encoder varies them.
func (w *walk) post(t *testing.T, call string) string {
	t.Helper()
	method, body, _ := strings.Cut(call, " ")
	url := "http://" + w.node().HTTP + "/idnode.v1.SeriesService/" + method
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(got), " ", "")
}
