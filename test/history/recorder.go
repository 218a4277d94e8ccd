package history

import (
	"bufio"
	"io"
	"sync"
	"time"
)

// Recorder writes the operations of one run. Safe for concurrent use.
type Recorder struct {
	start time.Time
	// watch is called with each Op before it is written, one at a time; may be nil.
	watch func(*Op)

	mu  sync.Mutex
	w   *bufio.Writer
	buf []byte
	// open holds the calls in flight; nil once the recorder is closed.
	open map[*Pending]struct{}
	// err is the first write that failed.
	err error
}

// NewRecorder records into w; the times begin now. If watch is not nil it sees
// each Op as it is written, one at a time: for counting while the run goes on.
// The Op is the recorder's again when watch returns.
func NewRecorder(w io.Writer, watch func(*Op)) *Recorder {
	return &Recorder{
		start: time.Now(), watch: watch, w: bufio.NewWriterSize(w, 1<<20),
		open: make(map[*Pending]struct{}),
	}
}

// Now is the time of the history, in nanoseconds.
func (r *Recorder) Now() int64 { return int64(time.Since(r.start)) }

// Pending is a call in flight. Its caller fills in what was answered and ends
// it, once.
type Pending struct {
	Op
	recorder *Recorder
	// asked is the Op before its caller began to fill in the answer.
	asked Op
}

// Begin stamps the call's time. The call must be ended, or is recorded as
// unknown when the recorder is closed.
func (r *Recorder) Begin(op Op) *Pending {
	op.Call = r.Now()
	p := &Pending{Op: op, recorder: r, asked: op}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open != nil {
		r.open[p] = struct{}{}
	}
	return p
}

// End stamps the time of the return and writes the call. After Close it does
// nothing: the call was recorded as unknown then.
func (p *Pending) End(outcome Outcome, code string) {
	p.Return = p.recorder.Now()
	p.Outcome, p.Code = outcome, code
	r := p.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.open[p]; !ok {
		return
	}
	delete(r.open, p)
	r.write(&p.Op)
}

// Event records what happens at one moment, or has happened already.
func (r *Recorder) Event(op Op) { r.Begin(op).End(OK, "") }

// write appends the Op as a line. The caller holds mu.
func (r *Recorder) write(op *Op) {
	if r.watch != nil {
		r.watch(op)
	}
	r.buf = append(op.AppendJSON(r.buf[:0]), '\n')
	if _, err := r.w.Write(r.buf); err != nil && r.err == nil {
		r.err = err
	}
}

// Close records the calls in flight as unknown, and returns the first error of
// all writes. It does not close the writer.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for p := range r.open {
		op := p.asked
		op.Outcome, op.Return = Unknown, Never
		r.write(&op)
	}
	r.open = nil
	if err := r.w.Flush(); err != nil && r.err == nil {
		r.err = err
	}
	return r.err
}
