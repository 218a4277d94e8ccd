package grpcapi

import (
	"sync/atomic"

	"github.com/idnode/idnode/client/idnodev1"
)

// maxIdleWorkers is how many workers all streams of a server keep for the calls to come.
const maxIdleWorkers = 2048

// workers are the goroutines that run the calls of one stream. They are reused, because a new
// goroutine has to grow its stack first, which costs as much as the rest of a small call. They
// end when jobs is closed.
type workers struct {
	jobs chan job
	// idle is that of all streams.
	idle *atomic.Int64
}

// job is one call of a message, or its batch.
type job struct {
	message *message
	call    *idnodev1.Call
	batch   []*idnodev1.Call
}

func (j job) run() {
	if j.call != nil {
		j.message.run(j.call)
		return
	}
	j.message.runAll(j.batch)
}

// run runs a job on an idle worker, or on a new one. It does not block.
func (w *workers) run(j job) {
	select {
	case w.jobs <- j:
	default:
		go w.work(j)
	}
}

func (w *workers) work(j job) {
	for ok := true; ok; {
		j.run()
		j, ok = w.next()
	}
}

// next waits for another job; false says that there is no more need to.
func (w *workers) next() (job, bool) {
	defer w.idle.Add(-1)
	if w.idle.Add(1) > maxIdleWorkers {
		return job{}, false
	}
	j, ok := <-w.jobs
	return j, ok
}
