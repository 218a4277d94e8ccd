package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/idnode/idnode/server/budget"
)

// part returns the head of a gRPC message, and so much of it.
func part(announced uint32, bytes int) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, announced), make([]byte, bytes)...)
}

// TestUnfinished: the bytes held for incomplete messages do not depend on how the bytes of a
// connection are cut into pieces.
func TestUnfinished(t *testing.T) {
	padded := append([]byte{3}, append(part(10, 10), 0, 0, 0)...)
	type step struct {
		frame []byte
		held  int64
	}
	steps := []step{
		{make([]byte, prefaceBytes), 0},
		{frame(4, 0, 0, make([]byte, 6)), 0}, // SETTINGS
		{frame(frameHeaders, 4, 1, make([]byte, 30)), openBytes},
		{frame(frameData, 0, 1, part(1000, 100)), openBytes + 105 + pieceBytes},
		{frame(frameHeaders, 4, 3, make([]byte, 30)), 2*openBytes + 105 + pieceBytes},
		{frame(frameData, flagEndStream, 3, part(7, 7)), openBytes + 105 + pieceBytes},
		{frame(frameData, 0, 1, make([]byte, 899)), openBytes + 1004 + 2*pieceBytes},
		{frame(frameData, 0, 1, append([]byte{1}, part(50, 10)...)), 15},
		{frame(frameData, 0, 1, make([]byte, 1)), 16 + pieceBytes},
		{frame(frameReset, 0, 1, make([]byte, 4)), 0},
		{frame(frameData, 0, 1, part(9, 1)), 0}, // A stream that ended.
		{frame(frameHeaders, 4, 1, make([]byte, 30)), 0},
		{frame(frameHeaders, 4, 5, make([]byte, 30)), openBytes},
		{frame(frameData, flagPadded, 5, padded), 0},
		{frame(frameData, 0, 5, part(0, 0)[:2]), 2 + pieceBytes},
		{frame(frameData, 0, 5, part(0, 0)[2:]), 0},
		{frame(frameData, 0, 5, append(part(4, 4), part(4, 4)...)), 0},
		{frame(frameData, flagPadded, 5, append([]byte{1}, append(part(9, 3), 0)...)), 8 + pieceBytes},
		{frame(frameData, flagEndStream, 5, nil), 0},
		{frame(frameHeaders, 4|flagEndStream, 7, make([]byte, 30)), 0},
	}
	for _, piece := range []int{1, 2, 7, 1 << 20} {
		u := newUnfinished()
		for i, s := range steps {
			for b := s.frame; len(b) > 0; {
				n := min(piece, len(b))
				u.read(b[:n], time.Time{})
				b = b[n:]
			}
			if u.held != s.held {
				t.Errorf("pieces of %d: %d bytes are held after frame %d, want %d", piece, u.held, i, s.held)
			}
		}
		if len(u.messages) > 0 {
			t.Errorf("pieces of %d: %v", piece, u.messages)
		}
	}
}

// TestStreamsThatTheServerEnds: an ended stream has no messages, even if bytes of one still
// arrive.
func TestStreamsThatTheServerEnds(t *testing.T) {
	trailers := frame(frameHeaders, flagEndStream|4, 1, make([]byte, 50))
	for name, end := range map[string][]byte{
		"trailers": append(frame(frameHeaders, 4, 1, make([]byte, 20)), trailers...), "reset": frame(frameReset, 0, 1, make([]byte, 4)),
	} {
		for piece := 1; piece <= len(end); piece++ {
			u := newUnfinished()
			u.read(bytes.Join([][]byte{
				make([]byte, prefaceBytes), frame(frameHeaders, 4, 1, nil),
				frame(frameData, 0, 1, part(1000, 100)),
			}, nil), time.Time{})
			held, less := u.held, int64(0)
			for b := range slices.Chunk(end, piece) {
				less += u.wrote(b)
			}
			if held == 0 || less != held || u.held != 0 {
				t.Errorf("%s in pieces of %d: of %d bytes %d are given back", name, piece, held, less)
			}
			if more, held, _ := u.read(frame(frameData, 0, 1, make([]byte, 100)), time.Time{}); more != 0 || held != 0 {
				t.Errorf("%s: %d bytes are held of what comes later", name, held)
			}
		}
	}
}

// TestOverdueMessagesEndTheirConnection, however few bytes they have, and however busily
// more come; streams that are silent between messages stay.
func TestOverdueMessagesEndTheirConnection(t *testing.T) {
	b := budget.New(budget.Limits{Bytes: 4 << 20, Connections: 4})
	connections := NewConnections(func(net.Conn, credentials.AuthInfo) *budget.Connection { return b.Open("shop") })
	began := time.Now()
	for name, c := range map[string]struct {
		sent  []byte
		ended bool
	}{
		"a part":           {sent: part(1000, 100), ended: true},
		"a part of a head": {sent: part(0, 0)[:1], ended: true},
		"a whole one":      {sent: part(100, 100)},
		"none yet":         {},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := net.Pipe()
			defer client.Close()
			known, _, err := connections.Credentials(nil).ServerHandshake(server)
			if err != nil {
				t.Fatal(err)
			}
			defer known.Close()
			conn := known.(*conn)
			conn.unfinished.read(bytes.Join([][]byte{
				make([]byte, prefaceBytes), frame(frameHeaders, 4, 1, nil), frame(frameData, 0, 1, c.sent),
			}, nil), began)
			connections.EndStalled(began.Add(wholeTime - 1))
			if err := conn.SetDeadline(time.Time{}); err != nil {
				t.Errorf("too early: %v", err)
			}
			conn.unfinished.read(frame(frameData, 0, 1, make([]byte, 1)), began.Add(wholeTime-1))
			connections.EndStalled(began.Add(wholeTime))
			if ended := conn.SetDeadline(time.Time{}) != nil; ended != c.ended {
				t.Errorf("the connection ended: %t", ended)
			}
		})
	}
}

// TestMessagesThatAreNotWhole are counted for their caller, and beyond its share end the
// connection; nothing is held for it then.
func TestMessagesThatAreNotWhole(t *testing.T) {
	b := budget.New(budget.Limits{Bytes: 4 << 20, Connections: 1})
	connections := NewConnections(func(net.Conn, credentials.AuthInfo) *budget.Connection { return b.Open("shop") })
	server, client := net.Pipe()
	defer client.Close()
	known, _, err := connections.Credentials(nil).ServerHandshake(server)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() {
		_, _ = client.Write(make([]byte, prefaceBytes))
		for stream := uint32(1); ; stream += 2 {
			_, err := client.Write(bytes.Join([][]byte{frame(frameHeaders, 4, stream, nil), frame(frameData, 0, stream, part(4<<20, 16<<10))}, nil))
			if err != nil {
				return
			}
		}
	}()
	n, err := io.Copy(io.Discard, struct{ io.Reader }{known})
	if !errors.Is(err, errUnfinished) || n < 1<<20 || n > 3<<20 {
		t.Errorf("after %d bytes: %v", n, err)
	}
	known.Close()
	if b.Held() != 0 {
		t.Errorf("%d bytes are held", b.Held())
	}
}

// TestWasteEndsTheConnection: calls that are taken back, and frames of any type that carry nothing, end
// it where they are too many. As many as libraries send beside calls do not.
func TestWasteEndsTheConnection(t *testing.T) {
	const frameSettings, flagEndHeaders = 4, 4
	call := func(stream uint32) [][]byte { return [][]byte{frame(frameHeaders, flagEndHeaders, stream, nil)} }
	whole := func(stream uint32) [][]byte {
		return append(call(stream), frame(frameData, flagEndStream, stream, part(3, 3)))
	}
	idle := func(f []byte) func(uint32) [][]byte { return func(uint32) [][]byte { return [][]byte{f} } }
	for name, test := range map[string]struct {
		frames func(stream uint32) [][]byte
		ends   bool
	}{
		"calls": {whole, false},
		"calls of two messages": {func(s uint32) [][]byte {
			return append(call(s), frame(frameData, 0, s, part(1, 1)), frame(frameData, flagEndStream, s, nil))
		}, false},
		"calls with what libraries send": {func(s uint32) [][]byte {
			return append(whole(s), frame(frameWindow, 0, 0, make([]byte, 4)), frame(framePing, 0, 0, make([]byte, 8)),
				frame(framePing, 1, 0, make([]byte, 8)), frame(frameWindow, 0, s, make([]byte, 4)))
		}, false},
		"calls and resets":       {func(s uint32) [][]byte { return append(call(s), frame(frameReset, 0, s, make([]byte, 4))) }, true},
		"SETTINGS":               {idle(frame(frameSettings, 0, 0, nil)), true},
		"DATA without bytes":     {idle(frame(frameData, 0, 1, nil)), true},
		"DATA of padding":        {idle(frame(frameData, flagPadded, 1, []byte{2, 0, 0})), true},
		"DATA of no stream":      {idle(frame(frameData, 0, 2, part(3, 3))), true},
		"DATA that ends nothing": {idle(frame(frameData, flagEndStream, 2, nil)), true},
		"HEADERS of an old call": {idle(frame(frameHeaders, flagEndHeaders, 1, make([]byte, 9))), true},
		"PRIORITY":               {idle(frame(2, 0, 1, make([]byte, 5))), true},
		"PUSH_PROMISE":           {idle(frame(5, 0, 1, make([]byte, 4))), true},
		"PING":                   {idle(frame(framePing, 0, 0, make([]byte, 8))), true},
		"GOAWAY":                 {idle(frame(7, 0, 0, make([]byte, 8))), true},
		"WINDOW_UPDATE":          {idle(frame(frameWindow, 0, 0, make([]byte, 4))), true},
		"CONTINUATION":           {idle(frame(9, 0, 1, nil)), true},
		"messages of nothing":    {idle(frame(frameData, 0, 1, part(0, 0))), true},
		"messages of nothing beside windows": {func(uint32) [][]byte {
			return [][]byte{frame(frameData, 0, 1, part(0, 0)), frame(frameWindow, 0, 0, make([]byte, 4))}
		}, true},
		"messages beside SETTINGS": {func(uint32) [][]byte {
			return [][]byte{frame(frameData, 0, 1, part(100, 100)), frame(frameSettings, 0, 0, nil)}
		}, true},
		"a message byte by byte":  {idle(frame(frameData, 0, 1, []byte{9})), true},
		"frames of unknown types": {idle(frame(200, 0, 0, nil)), true},
	} {
		t.Run(name, func(t *testing.T) {
			b := budget.New(budget.Limits{Bytes: 4 << 20, Connections: 1, Calls: 8})
			connections := NewConnections(func(net.Conn, credentials.AuthInfo) *budget.Connection { return b.Open("shop") })
			server, client := net.Pipe()
			known, _, err := connections.Credentials(nil).ServerHandshake(server)
			if err != nil {
				t.Fatal(err)
			}
			const rounds = 2000
			go func() {
				defer client.Close()
				_, _ = client.Write(make([]byte, prefaceBytes))
				_, _ = client.Write(bytes.Join(call(1), nil))
				for i := range uint32(rounds) {
					if _, err := client.Write(bytes.Join(test.frames(2*i+3), nil)); err != nil {
						return
					}
				}
			}()
			_, err = io.Copy(io.Discard, struct{ io.Reader }{known})
			_ = known.Close()
			if ended := errors.Is(err, errWasted); ended != test.ends {
				t.Errorf("the connection ends: %t, %v", ended, err)
			}
			if barred := b.Open("shop") == nil; barred != test.ends {
				t.Errorf("the caller gets no other connection: %t", barred)
			}
		})
	}
}

// TestWindowsOfAReader: one that reads a long answer sends nothing but windows.
func TestWindowsOfAReader(t *testing.T) {
	u, wasted := newUnfinished(), 0
	for _, f := range [][]byte{make([]byte, prefaceBytes), frame(frameHeaders, flagEndStream, 1, nil)} {
		u.read(f, time.Time{})
	}
	for range 10_000 {
		u.wrote(frame(frameData, 0, 1, make([]byte, 16<<10)))
		windows := append(frame(frameWindow, 0, 0, make([]byte, 4)), frame(frameWindow, 0, 1, make([]byte, 4))...)
		_, _, n := u.read(windows, time.Time{})
		wasted += n
	}
	if wasted > 0 {
		t.Errorf("%d windows are counted", wasted)
	}
}

// TestShortMessagesThatAreAnswered, of a stream that lives long, waste nothing.
func TestShortMessagesThatAreAnswered(t *testing.T) {
	u, wasted := newUnfinished(), 0
	for _, f := range [][]byte{make([]byte, prefaceBytes), frame(frameHeaders, 4, 1, nil)} {
		u.read(f, time.Time{})
	}
	for range 10_000 {
		short := append(frame(frameData, 0, 1, part(9, 9)), frame(frameWindow, 0, 0, make([]byte, 4))...)
		_, _, n := u.read(short, time.Time{})
		wasted += n
		u.wrote(frame(frameData, 0, 1, part(9, 9)))
	}
	if wasted > 0 {
		t.Errorf("%d frames are counted", wasted)
	}
}
