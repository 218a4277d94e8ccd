package cluster

import (
	"context"
	"io"
	"time"
)

const (
	// restRatio is how much longer than it works the writing of a snapshot rests,
	// so that it takes a quarter of one processor at most. Nobody waits for a
	// snapshot, but callers wait for whoever shares the processors with it: with
	// all of them busy, one that is written in one go adds what it takes of them to
	// the latency of every call.
	restRatio = 3
	// maxRest bounds one rest, and with it the whole: on a machine that is
	// overloaded, a piece takes long because the writer has to wait for its turn.
	maxRest = 20 * time.Millisecond
)

// pacedWriter rests after each write, for longer the longer it took to come to
// its end since the last rest. When ctx ends, so does the writing, with an error:
// a node that stops need not finish a snapshot.
type pacedWriter struct {
	ctx context.Context
	w   io.Writer
	// resumed is when the last rest ended.
	resumed time.Time
}

func newPacedWriter(ctx context.Context, w io.Writer) *pacedWriter {
	return &pacedWriter{ctx: ctx, w: w, resumed: time.Now()}
}

// Write implements io.Writer.
func (p *pacedWriter) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if err != nil {
		return n, err
	}
	return n, p.rest()
}

func (p *pacedWriter) rest() error {
	timer := time.NewTimer(min(restRatio*time.Since(p.resumed), maxRest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.ctx.Done():
	}
	p.resumed = time.Now()
	return p.ctx.Err()
}
