package bytesize

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "7": 7, "1023": 1023, "1KiB": 1 << 10, "64MiB": 64 << 20, "3GiB": 3 << 30, "8388607TiB": 8388607 << 40,
		"9223372036854775807": math.MaxInt64,
	} {
		if got, err := Parse(text); got != want || err != nil || got.String() != text {
			t.Errorf("%s is %d, which is %s, %v", text, int64(got), got, err)
		}
	}
	for _, text := range []string{
		"", "MiB", "1.5MiB", "64MB", "64M", "64 MiB", "-1KiB", "-1", "+1", "8388608TiB",
		"9223372036854775808", "1KiBKiB", "soon",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), "such as 512KiB") {
			t.Errorf("%q is %d, %v", text, int64(got), err)
		}
	}
}

func TestEverySizeReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Size(rapid.Int64Min(0).Draw(t, "size"))
		if got, err := Parse(s.String()); got != s || err != nil {
			t.Errorf("%d is %s, which is %d, %v", int64(s), s, int64(got), err)
		}
	})
}

func TestRounded(t *testing.T) {
	for s, want := range map[Size]string{0: "0 bytes", 1023: "1023 bytes", 1536: "1.5KiB", 5<<40 + 1: "5.0TiB"} {
		if got := s.Rounded(); got != want {
			t.Errorf("%d is %s, want %s", int64(s), got, want)
		}
	}
}
