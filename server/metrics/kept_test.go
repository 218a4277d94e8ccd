package metrics

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/idnode/idnode/test/compat"
)

// TestLabelsKept: dashboards and alerts have the labels too. Of what is counted the labels' names are compared, of what a
// scrape reads in a world that never changes, the values too.
func TestLabelsKept(t *testing.T) {
	m := aWorld().observed()
	m.space.look(t.Context(), aWorld())
	m.Certificates(func() (own, ca time.Time) { return time.Now(), time.Now() }, func() int { return 0 })
	described := make(chan *prometheus.Desc, 1000)
	m.registry.Describe(described)
	close(described)
	var lines []string
	form := regexp.MustCompile(`fqName: "((?:idnode|grpc)_.*)", help: .*, constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)
	for d := range described {
		if found := form.FindStringSubmatch(d.String()); found != nil {
			lines = append(lines, found[1]+" {"+found[2]+"} {"+found[3]+"}")
		}
	}
	databases := regexp.MustCompile(`database="[^"]*"`) // What is counted for all but a few has the label other.
	for series := range scrape(t, m) {
		if strings.HasPrefix(series, "idnode_") && !strings.HasPrefix(series, "idnode_build_info") {
			lines = append(lines, databases.ReplaceAllString(series, "database"))
		}
	}
	compat.Names(t, compat.Watched, "labels", lines)
}
