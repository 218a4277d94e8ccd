package peer

import (
	"encoding/binary"
	"sync"
	"time"
)

// What HTTP/2 (RFC 9113) and gRPC have before and around what is sent.
const (
	prefaceBytes = 24
	frameHead    = 9
	messageHead  = 5

	frameData, frameHeaders, frameReset = 0, 1, 3
	flagEndStream, flagPadded           = 0x1, 0x8
)

const (
	// openBytes is what a stream holds before its first message is whole: a goroutine,
	// and buffers.
	openBytes = 8 << 10
	// pieceBytes is what gRPC holds with each piece of a message beside its bytes.
	pieceBytes = 128
)

// wholeTime is how long a message may take to arrive as a whole. It is a minute and not
// seconds, because the server reads nothing from a caller that reads its answers slowly.
const wholeTime = time.Minute

// frames finds the frames in one direction of a connection.
type frames struct {
	// preface is how much of it is to come. head holds so much of a frame's head.
	preface int
	head    [frameHead]byte
	has     int
	// What is known of the frame that is read, and how many bytes of it are to come.
	kind, flags byte
	stream      uint32
	left        int
}

// next takes the head of a frame, or a part of what follows it, off b. It says whether a
// frame began, and whether it ended.
func (f *frames) next(b []byte) (payload, rest []byte, began, ended bool) {
	if f.preface > 0 {
		n := min(f.preface, len(b))
		f.preface -= n
		return nil, b[n:], false, false
	}
	if f.left > 0 {
		n := min(f.left, len(b))
		f.left -= n
		return b[:n], b[n:], false, f.left == 0
	}
	n := copy(f.head[f.has:], b)
	if f.has += n; f.has < frameHead {
		return nil, b[n:], false, false
	}
	f.has = 0
	f.left = int(binary.BigEndian.Uint32(f.head[:4]) >> 8)
	f.kind, f.flags = f.head[3], f.head[4]
	f.stream = binary.BigEndian.Uint32(f.head[5:]) & (1<<31 - 1)
	return nil, b[n:], true, f.left == 0
}

// endStream says whether the sender of the frame ends its stream.
func (f *frames) endStream() bool {
	return f.flags&flagEndStream != 0 && (f.kind == frameData || f.kind == frameHeaders) || f.kind == frameReset
}

// unfinished counts what a gRPC server holds of incomplete messages: the server opens
// the window of a stream for as much as is announced, and shows nothing of a message
// before all of it is there. It reads along with the transport, and looks at what that
// writes, because a stream that the server ended has no more messages. It is safe for
// concurrent use, with one reader and one writer.
type unfinished struct {
	out frames

	mu sync.Mutex
	in frames
	// How many bytes of the frame are padding, and whether the length of that is to come.
	pad    int
	padded bool
	// messages are those that come on each open stream, up to the newest. held is what
	// they hold together.
	messages map[uint32]message
	newest   uint32
	held     int64
}

func newUnfinished() *unfinished {
	return &unfinished{in: frames{preface: prefaceBytes}, messages: map[uint32]message{}}
}

// message is one that is not whole.
type message struct {
	head [messageHead]byte
	has  int
	left int64
	held int64
	// since is when its first byte came.
	since time.Time
}

// read records what the transport reads, and says how much more is held since, and how many
// streams were reset.
func (u *unfinished) read(b []byte, now time.Time) (more, held int64, resets int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.held
	for len(b) > 0 {
		var payload []byte
		var began, ended bool
		if payload, b, began, ended = u.in.next(b); began {
			u.beginFrame()
		}
		if len(payload) > 0 && u.in.kind == frameData {
			u.readData(payload, now)
		}
		if ended && u.in.endStream() {
			u.forget(u.in.stream)
		}
		if ended && u.in.kind == frameReset {
			resets++
		}
	}
	return u.held - before, u.held, resets
}

// wrote records what the transport writes, and says how much less is held since.
func (u *unfinished) wrote(b []byte) (less int64) {
	for len(b) > 0 {
		var ended bool
		if _, b, _, ended = u.out.next(b); ended && u.out.endStream() {
			u.mu.Lock()
			less += u.forget(u.out.stream)
			u.mu.Unlock()
		}
	}
	return less
}

// overdue says whether a message should be whole by now.
func (u *unfinished) overdue(now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, m := range u.messages {
		if m.has > 0 && now.Sub(m.since) >= wholeTime {
			return true
		}
	}
	return false
}

func (u *unfinished) beginFrame() {
	u.pad, u.padded = 0, u.in.kind == frameData && u.in.flags&flagPadded != 0
	m, open := u.messages[u.in.stream]
	switch {
	case u.in.kind == frameHeaders && u.in.stream > u.newest:
		u.newest = u.in.stream
		u.add(m, openBytes)
	case u.in.kind == frameData && u.in.left > 0 && open:
		u.add(m, pieceBytes)
	}
}

// readData reads of the messages of a stream, and of padding.
func (u *unfinished) readData(b []byte, now time.Time) {
	left := u.in.left + len(b)
	if u.padded {
		u.pad, u.padded = int(b[0]), false
		b, left = b[1:], left-1
	}
	b = b[:min(len(b), max(0, left-u.pad))]
	m, open := u.messages[u.in.stream]
	for len(b) > 0 && open {
		n := m.read(b, now)
		b = b[n:]
		if m.has == messageHead && m.left == 0 {
			u.held -= m.held
			m = message{}
			u.messages[u.in.stream] = m
		} else {
			m = u.add(m, n)
		}
	}
}

// read reads of one message and says how many bytes are its.
func (m *message) read(b []byte, now time.Time) int64 {
	if m.has == messageHead {
		n := min(m.left, int64(len(b)))
		m.left -= n
		return n
	}
	if m.has == 0 {
		m.since = now
	}
	n := copy(m.head[m.has:], b)
	if m.has += n; m.has == messageHead {
		m.left = int64(binary.BigEndian.Uint32(m.head[1:]))
	}
	return int64(n)
}

func (u *unfinished) add(m message, more int64) message {
	m.held += more
	u.held += more
	u.messages[u.in.stream] = m
	return m
}

// forget forgets a stream, and says how much was held for it.
func (u *unfinished) forget(stream uint32) int64 {
	held := u.messages[stream].held
	u.held -= held
	delete(u.messages, stream)
	return held
}
