package machine

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestField(t *testing.T) {
	file := filepath.Join(t.TempDir(), "info")
	text := "processor\t: 0\nmodel name\t: A CPU: fast\nmodel name\t: another\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"processor": "0", "model name": "A CPU: fast", "model": "unknown"} {
		if got := field(file, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := field(filepath.Join(t.TempDir(), "none"), "x"); got != "unknown" {
		t.Errorf("%q of a file that is not there", got)
	}
}

func TestQuantile(t *testing.T) {
	var took []time.Duration
	for i := range 100 {
		took = append(took, time.Duration(i+1)*time.Microsecond)
	}
	for _, tc := range []struct {
		n, percent int
		want       int64
	}{{100, 50, 50}, {100, 99, 99}, {100, 100, 100}, {1, 50, 1}, {1, 99, 1}, {3, 50, 2}} {
		if got := quantile(took[:tc.n], tc.percent); got != tc.want {
			t.Errorf("%d %% of %d: %d, want %d", tc.percent, tc.n, got, tc.want)
		}
	}
}

func TestMeasureFsync(t *testing.T) {
	dir := t.TempDir()
	f, err := MeasureFsync(dir, 10*time.Millisecond)
	if err != nil || f.P50us < 1 || f.P99us < f.P50us {
		t.Errorf("%+v %v", f, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
