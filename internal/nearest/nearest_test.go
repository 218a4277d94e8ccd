package nearest

import "testing"

func TestOf(t *testing.T) {
	words := []string{"count", "data-dir", "max-identities", "max-claims", "tag", "tls-ca", "bat", "cat"}
	for given, want := range map[string]string{
		"cuont": "count", "data-dri": "data-dir", "max-identitis": "max-identities", "taG": "tag", "datadir": "data-dir",
		"": "", "x": "", "color": "", "database": "", "hat": "bat",
	} {
		if got := Of(given, words); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
	for _, tt := range []struct {
		a, b string
		want int
	}{{"kitten", "sitting", 3}, {"", "ab", 2}, {"ab", "", 2}, {"same", "same", 0}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
