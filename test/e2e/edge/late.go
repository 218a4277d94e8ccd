package edge

import (
	"math/rand/v2"
	"net"
	"time"
)

const (
	// maxParcels is how many pieces of at most 32 KiB are on their way on a link.
	maxParcels = 1024
	// packetBytes is what one packet carries; each is lost or not by itself.
	packetBytes = 1400
	// retransmission is what a lost packet costs when TCP learns of it by nothing but
	// its own clock: Linux sends again after 200 ms at the earliest, and waits twice
	// as long each further time.
	retransmission = 200 * time.Millisecond
	// maxRetransmission is the longest it waits.
	maxRetransmission = 2 * time.Minute
	// fastBehind is how many packets must follow a lost one for TCP to learn of it
	// from the answers to them: it sends again after one round trip then.
	fastBehind = 3
)

// Line is what a line does to what is sent over it. The zero Line does nothing.
type Line struct {
	// Delay is how long everything takes, give or take Jitter.
	Delay, Jitter time.Duration
	// Loss is the part of the packets that are lost. Those who use TCP see them late,
	// and all that follows with them, because TCP sends again and keeps the order.
	Loss float64
	// BytesPerSecond is what it carries; 0 is no bound. What comes faster waits.
	BytesPerSecond int
}

// late writes everything to a connection in order, and as late as the line says.
type late struct {
	line    func() Line
	random  *rand.Rand
	parcels chan parcel
	// broken is closed when the connection is, from either side: what is on its way
	// then is lost.
	broken <-chan struct{}
	done   chan struct{}
	// due is when the newest parcel is, and sent when the line has taken it.
	due, sent time.Time
}

// parcel is what was written at once.
type parcel struct {
	due  time.Time
	data []byte
}

// newLate returns a writer to a connection; close ends it. The line is asked for
// at each write.
func newLate(to net.Conn, line func() Line, seed uint64, broken <-chan struct{}) *late {
	l := &late{
		line: line, random: rand.New(rand.NewPCG(seed, 0)), broken: broken,
		parcels: make(chan parcel, maxParcels), done: make(chan struct{}),
	}
	go l.deliver(to)
	return l
}

// Write implements io.Writer. What becomes of the data is not known yet.
func (l *late) Write(b []byte) (int, error) {
	line, now := l.line(), time.Now()
	if l.sent.Before(now) {
		l.sent = now
	}
	if line.BytesPerSecond > 0 {
		l.sent = l.sent.Add(time.Duration(len(b)) * time.Second / time.Duration(line.BytesPerSecond))
	}
	// Nothing overtakes what was sent before.
	if due := l.sent.Add(l.way(line) + l.lost(line, len(b))); due.After(l.due) {
		l.due = due
	}
	l.parcels <- parcel{due: l.due, data: append([]byte(nil), b...)}
	return len(b), nil
}

// way is how long a packet takes that is not lost.
func (l *late) way(line Line) time.Duration {
	if line.Jitter <= 0 {
		return line.Delay
	}
	return max(line.Delay-line.Jitter+time.Duration(l.random.Int64N(2*int64(line.Jitter))), 0)
}

// lost is how much later a number of bytes come because of lost packets.
func (l *late) lost(line Line, bytes int) time.Duration {
	var most time.Duration
	packets := (bytes + packetBytes - 1) / packetBytes
	for i := range packets {
		wait, again := time.Duration(0), retransmission
		if packets-i > fastBehind {
			again = 2 * line.Delay
		}
		for l.random.Float64() < line.Loss {
			wait += again
			again = min(max(2*again, retransmission), maxRetransmission)
		}
		most = max(most, wait)
	}
	return most
}

// deliver writes each parcel when it is due. After an error, which closes the
// connection for the other direction too, the rest is lost.
func (l *late) deliver(to net.Conn) {
	defer close(l.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var failed error
	for p := range l.parcels {
		if failed != nil {
			continue
		}
		timer.Reset(time.Until(p.due))
		select {
		case <-timer.C:
			_, failed = to.Write(p.data)
		case <-l.broken:
			failed = net.ErrClosed
		}
		if failed != nil {
			to.Close()
		}
	}
}

// close returns when everything was delivered, or is lost.
func (l *late) close() {
	close(l.parcels)
	<-l.done
}
