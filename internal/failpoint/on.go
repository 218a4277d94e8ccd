//go:build failpoint

package failpoint

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	armed, last = plan(os.Getenv("FAILPOINT"))
	hits        atomic.Int64
	clock       = os.Getenv("FAILPOINT_CLOCK")
)

func plan(text string) (Point, int64) {
	point, count, _ := strings.Cut(text, ":")
	n, err := strconv.ParseInt(count, 10, 64)
	if text != "" && (err != nil || n < 1) {
		panic("FAILPOINT is " + text + ", want a point, a colon and a number")
	}
	return Point(point), n
}

// Hit kills the process if this is the hit of the point that was asked for.
func Hit(p Point) {
	if p != armed || hits.Add(1) != last {
		return
	}
	fmt.Fprintf(os.Stderr, "killed at %s\n", p)
	_ = syscall.Kill(syscall.Getpid(), syscall.SIGKILL)
	select {}
}

// Now is the time as the process is made to see it. It reads the file each time,
// so that a test can set the clock while the process runs.
func Now() time.Time {
	now := time.Now()
	if clock == "" {
		return now
	}
	text, err := os.ReadFile(clock)
	if err != nil {
		panic(err)
	}
	wrong, err := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil {
		panic(err)
	}
	return now.Add(wrong)
}

// Tuned is what the environment changes.
func Tuned() (t Tuning) {
	if text := os.Getenv("FAILPOINT_TUNING"); text != "" {
		if err := json.Unmarshal([]byte(text), &t); err != nil {
			panic(err)
		}
	}
	return t
}
