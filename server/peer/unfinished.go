package peer

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes and types of HTTP/2 frames (RFC 9113) and gRPC messages.
const (
	prefaceBytes = 24
	frameHead    = 9
	messageHead  = 5

	frameData, frameHeaders, frameReset, frameSettings = 0, 1, 3, 4
	framePing, frameGoAway, frameWindow                = 6, 7, 8
	flagEndStream, flagEndHeaders, flagPadded          = 0x1, 0x4, 0x8
)

const (
	// openBytes is the memory of a stream before its first message is complete: a goroutine
	// and buffers.
	openBytes = 8 << 10
	// pieceBytes is gRPC's overhead for each piece of a message.
	pieceBytes = 128
)

const (
	// freeFrames may carry little for each that carries something, in either direction, and mostFreeFrames
	// at once. Something is a call's begin or end, or littleBytes of a message.
	freeFrames     = 4
	mostFreeFrames = 256
	littleBytes    = 64
)

// wholeTime is how long a message may take to arrive. It is a minute and not seconds, because
// the server does not read from a caller that reads its answers slowly.
const wholeTime = time.Minute

// frames splits one direction of a connection into frames.
type frames struct {
	// preface is the number of bytes of it still to come. head has the bytes of a frame's head
	// so far.
	preface int
	head    [frameHead]byte
	has     int
	// The frame being read, and the number of its bytes still to come.
	kind, flags byte
	stream      uint32
	left        int
}

// next takes the head of a frame, or a part of its payload, off b. began and ended report
// whether a frame began, and whether it ended.
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

func (f *frames) endStream() bool {
	return f.flags&flagEndStream != 0 && (f.kind == frameData || f.kind == frameHeaders) || f.kind == frameReset
}

// unfinished counts the memory that a gRPC server holds for incomplete messages: the server
// opens the window of a stream for the announced size, and shows nothing of a message before
// it is complete. It reads what the transport reads, and what the transport writes, because a
// stream that the server ended has no more messages. It is safe for concurrent use, with one
// reader and one writer.
type unfinished struct {
	out frames
	// sent are the frames with bytes of a message that were written since the last look at them.
	sent atomic.Int32

	mu sync.Mutex
	in frames
	// pad is the padding of the frame in bytes; padded means that its length is still to come. carries
	// means that the frame begins or ends a stream, and brought is how many bytes of a message it has.
	pad             int
	padded, carries bool
	brought         int
	// free are the frames that may still carry little.
	free int
	// messages are the incomplete messages of each open stream, up to the newest. held is
	// their sum in bytes.
	messages map[uint32]message
	newest   uint32
	held     int64
}

func newUnfinished() *unfinished {
	return &unfinished{in: frames{preface: prefaceBytes}, messages: map[uint32]message{}, free: mostFreeFrames}
}

type message struct {
	head [messageHead]byte
	has  int
	left int64
	held int64
	// since is when its first byte arrived.
	since time.Time
}

// read records bytes that the transport read. It returns by how much held grew, the new held,
// and the number of wasted frames: streams that were reset, and frames that carry nothing.
func (u *unfinished) read(b []byte, now time.Time) (more, held int64, wasted int) {
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
		if ended && u.endFrame() {
			wasted++
		}
	}
	return u.held - before, u.held, wasted
}

// endFrame reports whether the frame that ended is wasted (CVE-2019-9512, 9515, 9518). Libraries send
// windows and pings beside what carries something, and short messages are free if they are answered.
func (u *unfinished) endFrame() (wasted bool) {
	switch {
	case u.carries || u.brought >= littleBytes:
		u.free = min(u.free+freeFrames, mostFreeFrames)
	case u.freed() && (u.in.kind == frameWindow || u.in.kind == framePing || u.brought > 0):
		u.free--
	default:
		return true
	}
	return false
}

// freed reports whether a frame that carries little is free.
func (u *unfinished) freed() bool {
	if u.free == 0 {
		u.free = min(freeFrames*int(u.sent.Swap(0)), mostFreeFrames)
	}
	return u.free > 0
}

// wrote records bytes that the transport wrote, and returns by how much held shrank.
func (u *unfinished) wrote(b []byte) (less int64) {
	for len(b) > 0 {
		var began, ended bool
		if _, b, began, ended = u.out.next(b); began && u.out.kind == frameData && u.out.left > 0 {
			u.sent.Add(1)
		}
		if ended && u.out.endStream() {
			u.mu.Lock()
			less += u.forget(u.out.stream)
			u.mu.Unlock()
		}
	}
	return less
}

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
	u.carries, u.brought = open && u.in.endStream() && u.in.kind != frameReset, 0
	switch {
	case u.in.kind == frameHeaders && u.in.stream > u.newest:
		u.carries = true
		u.newest = u.in.stream
		u.add(m, openBytes)
	case u.in.kind == frameData && u.in.left > 0 && open:
		u.add(m, pieceBytes)
	}
}

func (u *unfinished) readData(b []byte, now time.Time) {
	left := u.in.left + len(b)
	if u.padded {
		u.pad, u.padded = int(b[0]), false
		b, left = b[1:], left-1
	}
	b = b[:min(len(b), max(0, left-u.pad))]
	m, open := u.messages[u.in.stream]
	if open {
		u.brought += len(b)
	}
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

// read reads a part of one message and returns the number of its bytes.
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

func (u *unfinished) forget(stream uint32) int64 {
	held := u.messages[stream].held
	u.held -= held
	delete(u.messages, stream)
	return held
}
