package fsm

import "testing"

// TestLimitsUsed: of limits for each database the share of the fullest database counts.
func TestLimitsUsed(t *testing.T) {
	l := newFormedLog(t)
	for key, value := range map[string]int64{
		"max-claims": 4, "max-identities": 2, "max-hilos": 0, "max-databases": 10, "max-names-per-database": 8, "max-name-bytes-total": 100,
	} {
		l.mustApplied(l.do(opSet(key, value)))
	}
	l.mustApplied(l.do(opClaimID("users/4")))
	l.mustApplied(l.do(opNext("users", 1)))
	got := l.state.LimitsUsed()
	for key, want := range map[string]float64{
		"max-claims": 0.25, "max-identities": 0.5, "max-hilos": 0, "max-databases": 0.1, "max-names-per-database": 0.25,
		"max-name-bytes-total": 0.12,
	} {
		diff(t, want, got[key])
	}
	if len(got) != int(settingCount)-1 {
		t.Errorf("%d limits are told: %v", len(got), got)
	}
}
