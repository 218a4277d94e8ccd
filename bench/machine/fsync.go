package machine

import (
	"errors"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Fsync is how long the disk takes to make an append durable, in microseconds.
type Fsync struct {
	P50us int64 `json:"p50_us"`
	P99us int64 `json:"p99_us"`
}

// appendSize is how much is appended at a time.
const appendSize = 4 << 10

// MeasureFsync appends 4 KiB to a file in dir and makes that durable with
// fdatasync, again and again for a while.
func MeasureFsync(dir string, lasts time.Duration) (Fsync, error) {
	f, err := os.CreateTemp(dir, "bench-fsync-")
	if err != nil {
		return Fsync{}, err
	}
	took, err := appends(f, lasts)
	if err := errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		return Fsync{}, err
	}
	slices.Sort(took)
	return Fsync{P50us: quantile(took, 50), P99us: quantile(took, 99)}, nil
}

func appends(f *os.File, lasts time.Duration) (took []time.Duration, err error) {
	block := make([]byte, appendSize)
	for end := time.Now().Add(lasts); len(took) == 0 || time.Now().Before(end); {
		begin := time.Now()
		if _, err := f.Write(block); err != nil {
			return nil, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
	}
	return took, nil
}

// quantile returns the value that so many percent of the sorted ones do not
// exceed, in microseconds.
func quantile(sorted []time.Duration, percent int) int64 {
	return sorted[(len(sorted)*percent+99)/100-1].Microseconds()
}
