package peer

import "encoding/binary"

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

// unfinished counts what a gRPC server holds of messages that are not whole: it opens
// the window of a stream for as much as is announced, and nobody else sees anything
// before all of that is there. It reads along with the transport, and belongs to the
// goroutine that does.
type unfinished struct {
	// begun says that the preface is over, head holds so much of a frame's head.
	begun bool
	head  [max(prefaceBytes, frameHead)]byte
	has   int
	// What is known of the frame that is read: how many bytes are to come, how many of
	// these are padding, and whether the length of that is to come first.
	kind, flags byte
	stream      uint32
	left, pad   int
	padded      bool

	// messages are those that are not whole, by stream, with streams that are open and
	// had none yet. held is what they hold together.
	messages map[uint32]message
	held     int64
}

// message is one that is not whole.
type message struct {
	head [messageHead]byte
	has  int
	left int64
	held int64
}

// read takes note of what the transport reads.
func (u *unfinished) read(b []byte) {
	for len(b) > 0 {
		if u.left == 0 {
			b = b[u.readHead(b):]
			continue
		}
		n := min(u.left, len(b))
		if u.kind == frameData {
			u.readData(b[:n])
		}
		u.left -= n
		b = b[n:]
		if u.left == 0 {
			u.endFrame()
		}
	}
}

// readHead reads of the preface, or of a frame's head.
func (u *unfinished) readHead(b []byte) int {
	size := frameHead
	if !u.begun {
		size = prefaceBytes
	}
	n := copy(u.head[u.has:size], b)
	if u.has += n; u.has < size {
		return n
	}
	u.has = 0
	if !u.begun {
		u.begun = true
		return n
	}
	u.left = int(binary.BigEndian.Uint32(u.head[:4]) >> 8)
	u.kind, u.flags = u.head[3], u.head[4]
	u.stream = binary.BigEndian.Uint32(u.head[5:]) & (1<<31 - 1)
	u.pad, u.padded = 0, u.kind == frameData && u.flags&flagPadded != 0
	u.beginFrame()
	if u.left == 0 {
		u.endFrame()
	}
	return n
}

func (u *unfinished) beginFrame() {
	m, open := u.messages[u.stream]
	switch {
	case u.kind == frameData && u.left > 0:
		u.set(m, pieceBytes)
	case u.kind == frameHeaders && !open:
		u.set(m, openBytes)
	}
}

// endFrame forgets the message of a stream that ended.
func (u *unfinished) endFrame() {
	ends := u.flags&flagEndStream != 0 && (u.kind == frameData || u.kind == frameHeaders)
	if ends || u.kind == frameReset {
		u.forget()
	}
}

// readData reads of the messages of a stream, and of padding.
func (u *unfinished) readData(b []byte) {
	if u.padded {
		u.pad, u.padded = int(b[0]), false
		b, u.left = b[1:], u.left-1
		defer func() { u.left++ }() // Its reader takes all of b away.
	}
	b = b[:min(len(b), max(0, u.left-u.pad))]
	for len(b) > 0 {
		m := u.messages[u.stream]
		n := int64(copy(m.head[m.has:], b))
		if m.has < messageHead {
			if m.has += int(n); m.has == messageHead {
				m.left = int64(binary.BigEndian.Uint32(m.head[1:]))
			}
		} else {
			n = min(m.left, int64(len(b)))
			m.left -= n
		}
		b = b[n:]
		if m.has == messageHead && m.left == 0 {
			u.forget()
		} else {
			u.set(m, n)
		}
	}
}

func (u *unfinished) set(m message, more int64) {
	if u.messages == nil {
		u.messages = map[uint32]message{}
	}
	m.held += more
	u.held += more
	u.messages[u.stream] = m
}

func (u *unfinished) forget() {
	u.held -= u.messages[u.stream].held
	delete(u.messages, u.stream)
}
