package apply

import (
	"context"
	"io"
	"time"

	"github.com/idnode/idnode/internal/pause"
)

const (
	// pauseRatio is the ratio of the pauses to the work of writing a snapshot, so that it
	// takes a quarter of one processor at most. No caller waits for a snapshot, but
	// callers share the processors with it: with all of them busy, a snapshot written in
	// one go adds its processor time to the latency of every call.
	pauseRatio = 3
	// maxPause bounds one pause, and so the whole: on an overloaded machine a piece takes
	// long because the writer waits to be scheduled.
	maxPause = 20 * time.Millisecond
)

// pacedWriter pauses after each write, in proportion to the time since the last pause.
// When ctx ends, writes fail: a node that stops need not finish a snapshot.
type pacedWriter struct {
	ctx context.Context
	w   io.Writer
	// resumed is when the last pause ended.
	resumed time.Time
}

func newPacedWriter(ctx context.Context, w io.Writer) *pacedWriter {
	return &pacedWriter{ctx: ctx, w: w, resumed: time.Now()}
}

func (p *pacedWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if err != nil {
		return n, err
	}
	return n, p.pause()
}

func (p *pacedWriter) pause() error {
	pause.For(p.ctx, min(pauseRatio*time.Since(p.resumed), maxPause))
	p.resumed = time.Now()
	return p.ctx.Err()
}
