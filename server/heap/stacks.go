package heap

import "runtime"

// A goroutine starts with the average stack that the last collection found in use
// (runtime.gcComputeStartingStackSize). Most goroutines of a node wait at little depth, so
// that is 2 or 4 KiB, and the handler of a call needs 8. A stack grows by copying, and for
// each frame the runtime looks up which of its words are pointers: together a tenth of a
// node's processor time. So one goroutine has a deep stack in use, by which the average is
// that of a handler.
const (
	// goroutinesPerFrame is for how many goroutines the deep stack has one frame: 4 KiB for
	// each. With what they use themselves that is an average of 4 to 8.
	goroutinesPerFrame = 8
	// maxFrames bounds the deep stack to 384 KiB. Where very many goroutines wait, those of
	// connections, they start with less: larger stacks would take more than they save.
	maxFrames  = 12
	frameBytes = 32 << 10
)

type stacks struct {
	frames  int
	release func()
}

// RaiseStacks lets goroutines start with the stack of a handler, until the function it
// returns is called.
func RaiseStacks() (release func()) {
	s := &stacks{release: func() {}}
	stop := afterCollections(s.adjust)
	return func() {
		stop()
		s.release()
	}
}

func (s *stacks) adjust() {
	if want := min(runtime.NumGoroutine()/goroutinesPerFrame, maxFrames); want != s.frames {
		s.release()
		s.frames, s.release = want, holdStack(want)
	}
}

// holdStack has a stack of so many large frames in use until release is called.
func holdStack(frames int) (release func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		descend(frames, end)
	}()
	return func() {
		close(end)
		<-ended
	}
}

// descend waits below so many large frames. Only the growth of the stack touches them, which
// copies them.
//
//go:noinline
func descend(frames int, end <-chan struct{}) (sum byte) {
	if frames == 0 {
		<-end
		return 0
	}
	if frames < 0 { // It never is, but the frame has room for this.
		var frame [frameBytes]byte
		for i := range frame {
			frame[i] = sum
			sum += frame[i/2]
		}
	}
	return sum + descend(frames-1, end)
}
