package hilo_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"
	"time"

	"github.com/idnode/idnode/hilo"
)

func TestNextSizeVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/hilo-size.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			LastSize int64    `json:"last_size"`
			Idle     *float64 `json:"idle_s"`
			Size     int64    `json:"size"`
		}
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 50 {
		t.Fatalf("read %d cases, want 50 or more", len(file.Cases))
	}
	for _, c := range file.Cases {
		var idle time.Duration
		if c.Idle != nil {
			idle = time.Duration(math.Round(*c.Idle*1000)) * time.Millisecond
		}
		if got := hilo.NextSize(c.LastSize, idle, c.Idle != nil); got != c.Size {
			t.Errorf("NextSize(%d, %v, %v) = %d, want %d", c.LastSize, idle, c.Idle != nil, got, c.Size)
		}
	}
}

func TestNextSizeAtTheEdges(t *testing.T) {
	for _, c := range []struct {
		name     string
		lastSize int64
		idle     time.Duration
		want     int64
	}{
		{"just below half a minute", 100, 30*time.Second - 1, 200},
		{"29.999 s", 100, 29_999 * time.Millisecond, 200},
		{"half a minute", 100, 30 * time.Second, 100},
		{"a minute", 100, 60 * time.Second, 100},
		{"just above a minute", 100, 60*time.Second + 1, 50},
		{"60.001 s", 100, 60_001 * time.Millisecond, 50},
		{"an odd size is halved downwards", 101, time.Hour, 50},
		{"the clock went back", 100, math.MinInt64, 200},
		{"for ever", 1 << 20, math.MaxInt64, 1 << 19},
		{"a size below 0", math.MinInt64, 0, hilo.MinSize},
		{"a size just above the cap, halved", hilo.MaxSize + 1, time.Hour, hilo.MaxSize / 2},
		{"a size far above the cap, halved", math.MaxInt64, time.Hour, hilo.MaxSize},
		{"a size above the cap, again", math.MaxInt64, 45 * time.Second, hilo.MaxSize},
		{"a size above the cap, doubled", math.MaxInt64, 0, hilo.MaxSize},
		{"the cap, doubled", hilo.MaxSize, 0, hilo.MaxSize},
		{"half the cap and one, doubled", hilo.MaxSize/2 + 1, 0, hilo.MaxSize},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := hilo.NextSize(c.lastSize, c.idle, true); got != c.want {
				t.Errorf("NextSize(%d, %v) = %d, want %d", c.lastSize, c.idle, got, c.want)
			}
		})
	}
	if got := hilo.NextSize(math.MaxInt64, 0, false); got != hilo.MaxSize {
		t.Errorf("without a last range, NextSize is %d, want %d", got, hilo.MaxSize)
	}
}

// A busy client sees 32, 64, 128 … 1,048,576, and stays there.
func TestNextSizeOfABusyClient(t *testing.T) {
	size := hilo.NextSize(0, 0, false)
	for want := int64(hilo.MinSize); want < hilo.MaxSize; want *= 2 {
		if size != want {
			t.Fatalf("got %d, want %d", size, want)
		}
		size = hilo.NextSize(size, time.Second, true)
	}
	if again := hilo.NextSize(size, time.Second, true); size != hilo.MaxSize || again != hilo.MaxSize {
		t.Errorf("got %d and then %d, want the cap twice", size, again)
	}
}
