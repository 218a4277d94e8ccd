package peer

import (
	"encoding/binary"
	"io"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
)

// Connections are refused with a reason so often and no more: clients connect again at once where a call heard
// one, and slowly where the connection just ends.
const (
	refusalsAtOnce = 8
	refusalTime    = 500 * time.Millisecond
)

// refuse answers the first call of a connection with the reason for which that ends, if there is room for it. No
// server of gRPC reads it: its buffers are what the limit keeps. raw is what is below secured.
func (c *Connections) refuse(secured, raw net.Conn, reason string) {
	select {
	case c.refusals <- struct{}{}:
	default:
		return
	}
	time.AfterFunc(refusalTime, func() { <-c.refusals })
	_ = raw.SetDeadline(time.Now().Add(refusalTime))
	if _, err := secured.Write(frame(frameSettings, 0, 0, nil)); err != nil {
		return
	}
	stream, err := firstCall(secured)
	if err != nil {
		return
	}
	last := binary.BigEndian.AppendUint64(nil, uint64(stream)<<32) // and no error
	answer := frame(frameHeaders, flagEndStream|flagEndHeaders, stream, unavailable(reason))
	_, err = secured.Write(append(answer, frame(frameGoAway, 0, 0, last)...))
	if half, ok := raw.(interface{ CloseWrite() error }); ok && err == nil && half.CloseWrite() == nil {
		// A connection that is closed with something unread is reset, and the reason may be lost.
		_, _ = io.CopyN(io.Discard, raw, maxUnread)
	}
}

// maxUnread is more than what a client sends before it reads.
const maxUnread = 64 << 10

// firstCall reads up to the headers of a call, and returns its stream.
func firstCall(conn net.Conn) (uint32, error) {
	in := io.LimitReader(conn, maxUnread)
	_, err := io.CopyN(io.Discard, in, prefaceBytes)
	for err == nil {
		var head [frameHead]byte
		if _, err = io.ReadFull(in, head[:]); err == nil && head[3] == frameHeaders {
			return binary.BigEndian.Uint32(head[5:]) &^ (1 << 31), nil
		}
		_, err = io.CopyN(io.Discard, in, int64(binary.BigEndian.Uint32(head[:4])>>8))
	}
	return 0, err
}

// unavailable returns the headers that are the whole answer of a call (gRPC's Trailers-Only), none of them in the table
// of HPACK but the first, which is ":status: 200" (RFC 7541, 6.1 and 6.2.2). Each text has fewer than 127 bytes. The
// status is that of a node that is not there: another one may take the caller.
func unavailable(reason string) []byte {
	answer := "\x88"
	for _, field := range [][2]string{
		{"content-type", "application/grpc"}, {"grpc-status", strconv.Itoa(int(codes.Unavailable))}, {"grpc-message", reason},
	} {
		answer += "\x00" + string(rune(len(field[0]))) + field[0] + string(rune(len(field[1]))) + field[1]
	}
	return []byte(answer)
}

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	head := append(binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind)), flags)
	return append(binary.BigEndian.AppendUint32(head, stream), payload...)
}
