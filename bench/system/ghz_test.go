package system

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/idnode/idnode/internal/bench"
)

// TestReportOfGhz reads the parts of ghz's JSON that are used.
func TestReportOfGhz(t *testing.T) {
	const printed = `{"count":1203,"total":2000000000,"average":106000000,"fastest":900000,"slowest":252000000,"rps":601.5,
		"statusCodeDistribution":{"OK":1200,"Unavailable":3},"latencyDistribution":[
		{"percentage":10,"latency":1000000},{"percentage":50,"latency":12345678},{"percentage":99,"latency":98765432}]}`
	var r ghzReport
	if err := json.Unmarshal([]byte(printed), &r); err != nil {
		t.Fatal(err)
	}
	want := bench.Report{
		Op: "put", Via: ViaGhz, Callers: 64, Batch: 1, Names: 1, Seconds: 2, CallsPerS: 601.5, IDsPerS: 601.5,
		P50us: 12345, P99us: 98765, MaxUs: 252000, ErrorReasons: map[string]int64{"Unavailable": 3},
	}
	if diff := cmp.Diff(want, r.report(Point{Op: "put", Via: ViaGhz, Callers: 64, Batch: 1})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
