package peers

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	raftlogv1 "github.com/idnode/idnode/proto/raftlog/v1"
)

func TestHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader := bytes.Repeat([]byte{0xaa}, 16)
		name := "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		h := &Hint{}
		choose := func(own string) string { return h.Choose(time.Now(), own, "self") }
		h.heard(time.Now(), leader)
		if got := choose("own"); got != "own" {
			t.Errorf("%q, want what Raft says", got)
		}
		if got := choose(""); got != "" {
			t.Errorf("%q during an election, want nobody", got)
		}
		time.Sleep(hintAfter)
		if got := choose(""); got != "" {
			t.Errorf("%q from an old hint, want nobody", got)
		}
		h.heard(time.Now(), leader)
		if got := choose(""); got != name {
			t.Errorf("%q, want the hint", got)
		}
	})
}

// TestWhereTheLeaderIs: another node's table counts until Raft here has a leader, unless
// it is of an earlier start of the leader.
func TestWhereTheLeaderIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(starts uint64, address string) *raftlogv1.Member {
			return &raftlogv1.Member{Id: []byte("1"), GrpcAddress: address, Starts: starts}
		}
		h := &Hint{}
		want := func(known *raftlogv1.Member, address string) {
			t.Helper()
			if got := h.Locate(known).GetGrpcAddress(); got != address {
				t.Errorf("%q, want %q", got, address)
			}
		}
		h.Choose(time.Now(), "own", "self")
		h.found(at(2, "new"))
		want(at(1, "old"), "old")
		h.Choose(time.Now(), "", "self")
		if h.ask(time.Now()) {
			t.Error("others are asked during an election")
		}
		time.Sleep(hintAfter)
		if !h.ask(time.Now()) || h.ask(time.Now()) {
			t.Error("others are not asked once")
		}
		h.found(at(2, "new"))
		want(at(1, "old"), "new")
		want(at(3, "newest"), "newest")
		want(&raftlogv1.Member{Id: []byte("2"), GrpcAddress: "another"}, "another")
		h.Choose(time.Now(), "own", "self")
		h.Choose(time.Now(), "", "self")
		want(at(1, "old"), "old")
	})
}
