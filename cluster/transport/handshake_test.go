package transport

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/idnode/idnode/cluster/witness"
	"github.com/idnode/idnode/internal/nodeid"
	"github.com/idnode/idnode/test/logbuffer"
)

// counted counts the messages that one side of a connection sends.
type counted struct {
	net.Conn
	sent *atomic.Int32
}

// Write implements net.Conn.
func (c counted) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

// countedPort counts the answers of a port.
type countedPort struct {
	net.Listener
	sent *atomic.Int32
}

// Accept implements net.Listener.
func (l countedPort) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	return counted{conn, l.sent}, err
}

// TestAGreetingIsOneDialAndOneRoundTrip, whatever it is for.
func TestAGreetingIsOneDialAndOneRoundTrip(t *testing.T) {
	for _, why := range []purpose{forRaft, forProbe, forAcceptance, forCalls} {
		var dials, greetings, answers atomic.Int32
		b := newBook()
		start(t, b, "B", func(c *Config) { c.Listener = countedPort{c.Listener, &answers} })
		a := start(t, b, "A", func(c *Config) {
			c.DialContext = func(ctx context.Context, address string) (net.Conn, error) {
				dials.Add(1)
				conn, err := DialTCP(ctx, address)
				return counted{conn, &greetings}, err
			}
		})
		peer, _ := b.Lookup(idOf("B"))
		open, err := a.stream.greet(t.Context(), peer, why)
		must(t, err)
		_ = open.raw.Close()
		if d, g, r := dials.Load(), greetings.Load(), answers.Load(); d != 1 || g != 1 || r != 1 {
			t.Errorf("purpose %d: %d dials, %d greetings and %d answers", why, d, g, r)
		}
	}
}

// TestAnotherVersionOfTheHandshakeIsRefused by either side, and both logs say so.
func TestAnotherVersionOfTheHandshakeIsRefused(t *testing.T) {
	const theirs, says = "idnraft\x07", "it speaks version 7 of the handshake, this program 1"
	b := newBook()
	var log logbuffer.Buffer
	var told Status
	a := start(t, b, "A", func(c *Config) {
		c.Logger, c.OnRefused = slog.New(slog.NewTextHandler(&log, nil)), func(_ Peer, s Status) { told = s }
	})
	port := listen(t)
	b.put(Peer{ID: idOf("B"), Tag: "B", Address: port.Addr().String()})
	var work sync.WaitGroup
	t.Cleanup(func() { _ = port.Close(); work.Wait() })
	work.Go(func() {
		for conn, err := port.Accept(); err == nil; conn, err = port.Accept() {
			_, _ = conn.Write([]byte(theirs))
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	})
	err := a.Greet(t.Context(), raft.ServerID(idOf("B")))
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.HasSuffix(err.Error(), says) || told != OtherVersion {
		t.Errorf("dialled, it is refused by %v, and the process is told %v", err, told)
	}
	if answers, _ := a.Answers(t.Context(), raft.ServerID(idOf("B"))); !answers {
		t.Error("it answers, and is taken for gone")
	}
	logged := func(line string) bool {
		return slices.ContainsFunc(strings.Split(log.String(), "\n"),
			func(l string) bool { return strings.Contains(l, line) && strings.Contains(l, says) })
	}
	if !logged("a node refused our Raft connection") {
		t.Errorf("the dialler's log does not say it: %s", log.String())
	}
	dialler := connect(t, a)
	_, err = dialler.Write(append([]byte(theirs), make([]byte, maxOtherGreeting)...))
	must(t, err)
	if answer, err := io.ReadAll(dialler); err != nil || string(answer) != opening {
		t.Errorf("it is answered %q, %v", answer, err)
	}
	eventually(t, "a line about it in the log", func() bool { return logged("a Raft connection was refused") })
}

// TestAnExtensionOfTheHandshakeIsSkipped: what a later program says more does not keep it out, and what follows is
// read as ever.
func TestAnExtensionOfTheHandshakeIsSkipped(t *testing.T) {
	g := greeting{Purpose: forCalls, Process: 8}
	frame := append(encodeFields(g), 0, 5, 'n', 'e', 'w', 'e', 'r')
	r := bytes.NewReader(append(frame, encode(greetingReply{Status: Removed})...))
	if got, err := readGreeting(r); err != nil || got != g {
		t.Fatalf("read %+v, %v", got, err)
	}
	if got, err := readReply(r); err != nil || got.Status != Removed || r.Len() > 0 {
		t.Fatalf("read %+v, %v, and %d bytes are left", got, err, r.Len())
	}
	if _, err := readGreeting(bytes.NewReader(frame[:len(frame)-1])); err == nil {
		t.Error("a greeting is read whose extension is cut short")
	}
}

// TestBytesOfTheHandshake: new fields of either message, or of a disk's state, are extensions or need a new version,
// because nodes of both programs must understand each other's refusal.
func TestBytesOfTheHandshake(t *testing.T) {
	disk := witness.DiskState{Trusted: true, Starts: 2, Last: 3, LastTerm: 4, Term: 5, Committed: 6, Age: 7}
	const diskBytes = "01" + "0000000000000002" + "0000000000000003" + "0000000000000004" +
		"0000000000000005" + "0000000000000006" + "0000000000000007"
	for name, tt := range map[string]struct {
		message any
		want    string
	}{
		"greeting": {
			greeting{
				Purpose: forCalls, Cluster: clusterID{0: 0xc1}, Dialler: nodeid.ID{0: 0xd1}, Target: nodeid.ID{0: 0xe1},
				Process: 8, Disk: disk,
			},
			"03" + "c1000000000000000000000000000000" + "d1000000000000000000000000000000" + "e1000000000000000000000000000000" +
				"0000000000000008" + diskBytes,
		},
		"answer": {
			greetingReply{Status: Removed, ID: nodeid.ID{0: 0xa1}, Process: 9, Disk: disk},
			fmt.Sprintf("%02x", byte(Removed)) + "a1000000000000000000000000000000" + "0000000000000009" + diskBytes,
		},
	} {
		if got, want := hex.EncodeToString(encode(tt.message)), hex.EncodeToString([]byte("idnraft\x01"))+tt.want+"0000"; got != want {
			t.Errorf("%s: %s, not %s", name, got, want)
		}
	}
}
