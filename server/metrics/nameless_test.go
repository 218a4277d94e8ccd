package metrics

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/idnode/idnode/client/docid"
	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

// TestNamesAreHidden from a caller that may not read everything: it gets one sum, which
// has the same name on every node and after a restart, and this node's etags under a
// pseudonym; others get the names as before.
func TestNamesAreHidden(t *testing.T) {
	w := &world{
		last:  map[string]uint64{"shop": 17},
		etags: &raftlogv1.EtagRecord{Ceilings: []*raftlogv1.EtagCeiling{{Database: "shop", Ceiling: 1 << 20}}},
	}
	m := w.observed()
	m.Service().Issued("shop", docid.GUID, 3)
	m.Service().Issued("depot", docid.GUID, 5)
	mux, read := http.NewServeMux(), false
	m.Handle(mux.Handle, func(*http.Request) bool { return read }, sameCaller, anyHost, Health{})
	databases := func() (lines []string) {
		t.Helper()
		got := httptest.NewRecorder()
		mux.ServeHTTP(got, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for line := range strings.Lines(got.Body.String()) {
			if strings.Contains(line, databaseLabel+"=") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	hidden, again := databases(), databases()
	read = true
	named := databases()
	slices.Sort(hidden)
	slices.Sort(again)
	if !slices.Equal(hidden, again) {
		t.Errorf("pseudonyms change: %s, then %s", hidden, again)
	}
	text := strings.Join(hidden, "")
	if strings.Contains(text, "shop") || strings.Contains(text, "depot") || !strings.Contains(text, `{database="other",`) {
		t.Error(text)
	}
	for _, want := range []string{`idnode_ids_issued_total{database="hidden",strategy="guid"} 8`, `idnode_hilo_ranges_total{database="hidden"} 0`} {
		if strings.Count(text, want+"\n") != 1 {
			t.Errorf("not once %s in %s", want, text)
		}
	}
	for _, want := range []string{`idnode_ids_issued_total{database="shop",strategy="guid"} 3`, `idnode_etag_last{database="shop"} 17`} {
		if !slices.Contains(named, want+"\n") {
			t.Errorf("no %s in %s", want, named)
		}
	}
	// An alarm compares two series of one database.
	if !regexp.MustCompile(`(?s)idnode_etag_ceiling\{database="(hidden-\w+)"\} .*idnode_etag_last\{database="(hidden-\w+)"\} 17`).MatchString(text) {
		t.Error(text)
	}
}
