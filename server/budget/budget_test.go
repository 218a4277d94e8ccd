package budget

import (
	"testing"
	"testing/synctest"
	"time"
)

func small() *Budget { return New(Limits{Bytes: 100, Connections: 2}) }

// TestBytes: a caller has half of what the others leave, over all its connections, and
// one who is refused takes nothing.
func TestBytes(t *testing.T) {
	b := small()
	shop, shop2, books := b.Open("shop"), b.Open("shop"), b.Open("books")
	for _, step := range []struct {
		of    *Connection
		bytes int64
		ok    bool
	}{{shop, 40, true}, {shop2, 11, false}, {shop2, 10, true}, {books, 26, false}, {books, 25, true}, {books, 1, false}} {
		if step.of.Hold(step.bytes) != step.ok {
			t.Errorf("%+v", step)
		}
	}
	if b.Held() != 75 {
		t.Errorf("%d bytes are held", b.Held())
	}
	shop.Give(40)
	if !books.Hold(20) || books.Hold(1) {
		t.Error("beside 10 bytes one caller has another share than 45")
	}
}

// TestNobodyTakesAll: how many callers take what they can, another has something, and
// one who holds nothing can begin calls that are not refused.
func TestNobodyTakesAll(t *testing.T) {
	b := New(Limits{Bytes: 1 << 20, Connections: 1})
	for _, name := range []string{"a", "b", "c", "d"} {
		greedy := b.Open(name)
		for bytes := int64(1 << 20); bytes > 0; bytes /= 2 {
			greedy.Hold(bytes)
		}
		if greedy.Hold(1) {
			t.Errorf("%s goes on", name)
		}
	}
	shop := b.Open("shop")
	if !shop.Hold(1<<15) || shop.Hold(1) {
		t.Error("the fifth has another share than 1/32")
	}
	books := b.Open("books")
	books.Unsent(1 << 20)
	if late := b.Open("late"); late.Hold(1) || !late.HoldLast(1<<20/512) || !late.HoldLast(1) || late.HoldLast(1) {
		t.Error("one who holds nothing has another right than to begin")
	}
	if books.HoldLast(1) {
		t.Error("a full caller has its last again")
	}
}

// TestWhatCannotBeRefused is counted all the same, until there is no room for it either.
func TestWhatCannotBeRefused(t *testing.T) {
	shop := small().Open("shop")
	shop.Unsent(56)
	if shop.Full() || shop.Hold(1) {
		t.Error("56 of 50 bytes")
	}
	shop.Unsent(1)
	if !shop.Full() {
		t.Error("57 of 50 bytes")
	}
	shop.Sent(7)
	if shop.Full() || shop.Hold(1) {
		t.Error("50 of 50 bytes")
	}
}

// TestStalled: a caller of whom much is held and who takes nothing of it for long. One
// who takes a little now and then is none, and one of whom little is held neither.
func TestStalled(t *testing.T) {
	b, now := small(), time.Unix(0, 0)
	shop, books := b.Open("shop"), b.Open("books")
	after := func(d time.Duration, of *Connection) bool {
		of.Stalled(now)
		now = now.Add(d)
		return of.Stalled(now)
	}
	books.Unsent(5)
	shop.Unsent(30)
	if after(time.Hour, books) {
		t.Error("little that is unread is nobody's business")
	}
	if after(stallTime-1, shop) {
		t.Error("less than half a minute")
	}
	shop.Sent(1)
	if after(stallTime-1, shop) {
		t.Error("something was read")
	}
	if !after(1, shop) {
		t.Error("nothing was read for half a minute")
	}
	shop.Sent(29)
	if shop.Hold(20); after(time.Hour, shop) {
		t.Error("all was read")
	}
}

// TestClosedConnections give back what was not sent, and nothing twice.
func TestClosedConnections(t *testing.T) {
	b := small()
	first, second := b.Open("shop"), b.Open("shop")
	if b.Open("shop") != nil {
		t.Error("a third connection")
	}
	first.Hold(5)
	first.Unsent(50)
	first.Close()
	first.Close()
	first.Sent(50)
	first.Unsent(7)
	if b.Held() != 5 {
		t.Errorf("%d bytes are held, of 5 that were taken", b.Held())
	}
	first.Give(5)
	if third := b.Open("shop"); third == nil || b.Open("shop") != nil {
		t.Error("a connection that was closed twice makes room for one")
	} else {
		third.Close()
	}
	second.Close()
	if len(b.callers) != 0 || b.Held() != 0 {
		t.Errorf("%d callers, %d bytes", len(b.callers), b.Held())
	}
}

// TestCallsInFlight are shared as bytes are, and one of a caller always begins. A caller that
// connects again has those still that go on.
func TestCallsInFlight(t *testing.T) {
	b := New(Limits{Connections: 2, Calls: 8})
	begin := func(of *Connection) (n int) {
		for of.Begin() {
			n++
		}
		return n
	}
	shop, shop2, books := b.Open("shop"), b.Open("shop"), b.Open("books")
	if n := begin(shop) + begin(shop2); n != 6 {
		t.Errorf("one caller has %d of 8", n)
	}
	if n := begin(books); n != 1 {
		t.Errorf("another has %d of the other 2", n)
	}
	for _, late := range []string{"c", "d", "e"} {
		if n := begin(b.Open(late)); n != 1 {
			t.Errorf("the caller %s has %d", late, n)
		}
	}
	shop.Close()
	shop2.Close()
	if again := b.Open("shop"); again.Begin() {
		t.Error("calls are forgotten with their connections")
	}
	for range 6 {
		shop.End()
	}
	if n := begin(b.Open("shop")); n == 0 {
		t.Error("calls that ended take places")
	}
}

// TestWaste: a caller wastes frames at a bounded rate, over all its connections. One that wastes more
// gets no connection for a while. Others are not touched, and what is over is forgotten.
func TestWaste(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New(Limits{Connections: 3, Calls: 100})
		shop, shop2, books := b.Open("shop"), b.Open("shop"), b.Open("books")
		if !shop.Wasted(time.Now(), 60) || !shop2.Wasted(time.Now(), 40) || shop2.Wasted(time.Now(), 1) {
			t.Error("a caller wastes another number at once than 100")
		}
		shop.Close()
		shop2.Close()
		if b.Open("shop") != nil || !books.Wasted(time.Now(), 100) {
			t.Error("a new connection makes good, or another caller pays")
		}
		time.Sleep(barTime)
		shop = b.Open("shop")
		if !shop.Wasted(time.Now(), 0) || !shop.Wasted(time.Now(), 50) || shop.Wasted(time.Now(), 1) {
			t.Error("a caller wastes another number a second than 25")
		}
		shop.Close()
		books.Close()
		once := b.Open("once")
		once.Wasted(time.Now(), 101) // More than ever are allowed at once, so none is counted.
		once.Close()
		if b.Open("once") != nil {
			t.Error("it is forgotten that a caller gets no connection")
		}
		time.Sleep(4 * time.Second)
		b.Open("other")
		if len(b.callers) != 1 {
			t.Errorf("%d callers are remembered", len(b.callers))
		}
	})
}

// TestNil counts nothing, and refuses nothing.
func TestNil(t *testing.T) {
	var c *Connection
	c.Unsent(1)
	c.Sent(1)
	c.Give(1)
	c.Close()
	c.End()
	if !c.Begin() || !c.Wasted(time.Now(), 1<<30) || !c.Hold(1<<62) || !c.HoldLast(1<<62) || c.Full() || c.Stalled(time.Now()) {
		t.Error("nothing refuses")
	}
}
