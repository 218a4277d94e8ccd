package leader

import (
	"strings"
	"testing"

	peerv1 "github.com/idnode/idnode/proto/peer/v1"
)

// TestWhoIsInTouchWithAMajority: A asks. "B:A" means that A does not answer B, and "C" that C
// does not answer A.
func TestWhoIsInTouchWithAMajority(t *testing.T) {
	for _, tt := range []struct{ name, voters, misses, lonely string }{
		{"all answer", "ABC", "", ""},
		{"a cluster of one", "A", "", ""},
		{"a voter is down", "ABC", "C", "C"},
		{"all others are down", "ABC", "B C", "ABC"},
		{"one link is cut, in one direction", "ABC", "B:A", ""},
		{"the leader answers nobody", "ABC", "B:A C:A", "A"},
		{"a voter answers nobody", "ABC", "A:B C:B", "B"},
		{"of two, the leader does not answer the other", "AB", "B:A", "AB"},
		{"the leader does not answer the only other that is up", "ABC", "B:A C", "ABC"},
		{"a majority of five remains", "ABCDE", "B:A C:A", ""},
		{"of five, two are down, and one gets no answer", "ABCDE", "D E B:A", "ABDE"},
		{"none of five gets an answer", "ABCDE", "B:A C:A D:A E:A", "A"},
	} {
		l := links{strings.Split(tt.voters, ""), map[string]*peerv1.PingResponse{}}
		for _, id := range l.voters {
			l.replies[id] = &peerv1.PingResponse{}
		}
		for _, miss := range strings.Fields(tt.misses) {
			by, of, told := strings.Cut(miss, ":")
			if told {
				l.replies[by].OutOfReach = append(l.replies[by].OutOfReach, []byte(of))
			} else {
				l.replies[miss] = nil
			}
		}
		lonely := ""
		for _, id := range l.voters {
			if l.lonely(id) {
				lonely += id
			}
		}
		if lonely != tt.lonely {
			t.Errorf("%s: %q are lonely, want %q", tt.name, lonely, tt.lonely)
		}
	}
}
