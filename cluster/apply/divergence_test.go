package apply

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// look is what a node has seen of the others: by id, the hash of each at index 10,
// where the node's own is "a". A lower-case id is nothing else than a name.
type look struct {
	// at is when, in milliseconds.
	at     int
	states string
}

// TestWhoseStateIsTheWrongOne walks through what node 1 sees, second by second.
// Each look is a list of id:hash; the hash of node 1 is a.
func TestWhoseStateIsTheWrongOne(t *testing.T) {
	for _, tt := range []struct {
		name, self, leader, voters string
		looks                      []look
		// wrong is when node 1 ends; 0 if it goes on.
		wrong int
	}{
		{"all alike", "1", "2", "123", []look{{1000, "2:a 3:a"}, {5000, "2:a 3:a"}}, 0},
		{"the leader alone of three", "1", "", "123", []look{{1000, "2:b"}, {2000, "2:b 3:b"}}, 2000},
		{"a leader that one of two contradicts", "1", "", "12", []look{{1000, "2:b"}, {9000, "2:b"}}, 0},
		{"a leader that one of three contradicts", "1", "", "123", []look{{1000, "2:b"}, {9000, "2:b"}}, 0},
		{"a follower alone of three", "1", "2", "123", []look{{1000, "2:b 3:b"}}, 1000},
		{"a follower that only the other follower contradicts", "1", "2", "123", []look{{1000, "2:a 3:b"}, {9000, "2:a 3:b"}}, 0},
		{"two followers that the leader contradicts", "1", "2", "123", []look{{1000, "2:b 3:a"}, {4000, "2:b 3:a"}, {8000, "2:b 3:a"}}, 0},
		{"a follower of two", "1", "2", "12", []look{{1000, "2:b"}, {2500, "2:b"}, {4000, "2:b"}}, 4000},
		{"a follower of three, the third down", "1", "2", "123", []look{{1000, "2:b"}, {2500, "2:b"}, {4000, "2:b"}}, 4000},
		{"the third comes in time, and agrees", "1", "2", "123", []look{{1000, "2:b"}, {3500, "3:a"}, {4000, "2:b"}, {6000, "2:b 3:a"}}, 0},
		{"what the third said is too old", "1", "2", "123", []look{{1000, "3:a"}, {3000, "2:b"}, {6500, "2:b"}}, 6500},
		{"what two said is too old", "1", "3", "1234", []look{{1000, "2:b"}, {1500, "4:b"}, {7000, "3:a"}}, 0},
		{"the leader is another one now", "1", "3", "123", []look{{1000, "2:b"}, {2500, "2:b"}, {4000, "2:b 3:a"}}, 0},
		{"the leader was restored from a snapshot meanwhile", "1", "2", "123", []look{{1000, "2:b"}, {2500, "2:a"}, {4000, "2:b"}}, 0},
		{"five, alone with the leader", "1", "2", "12345", []look{{1000, "2:a 3:b 4:b"}, {2000, "2:a 3:b 4:b 5:b"}}, 2000},
		{"five, two with the leader of three", "1", "2", "12345", []look{{1000, "2:b 3:b 4:a"}, {4000, "2:b 3:b 4:a"}}, 4000},
		{"five, three against the leader", "1", "2", "12345", []look{{1000, "2:b 3:b 4:a 5:a"}, {9000, "2:b 3:b 4:a 5:a"}}, 0},
		{"five, two, two and one", "1", "2", "12345", []look{{1000, "2:b 3:b 4:a 5:c"}}, 1000},
		{"five, the leader of two, two and one", "1", "", "12345", []look{{1000, "2:a 3:b 4:b 5:c"}}, 1000},
		{"three different states", "1", "", "123", []look{{1000, "2:b 3:c"}}, 1000},
		{"a watcher against the only voter", "w", "1", "1", []look{{1000, "1:b"}}, 1000},
		{"a watcher with a majority against the leader", "w", "1", "123", []look{{1000, "1:b 2:a 3:a"}, {9000, "1:b 2:a 3:a"}}, 0},
		{"voters do not end for a watcher", "1", "2", "123", []look{{1000, "w:b 2:a"}, {9000, "w:b 2:a"}}, 0},
		{"nobody leads", "1", "", "123", []look{{1000, "2:b"}, {9000, "2:b"}}, 0},
		{"a member that does not tell", "1", "2", "123", []look{{1000, "2: 3:"}, {9000, "2: 3:"}}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			own, d := &States{}, NewDivergence()
			own.add(10, 'a')
			ended := 0
			for _, l := range tt.looks {
				now := time.Unix(1000, 0).Add(time.Duration(l.at) * time.Millisecond)
				d.see(now, own, l.states)
				if _, _, wrong := d.Against(now, tt.self, tt.leader, strings.Split(tt.voters, "")); wrong && ended == 0 {
					ended = l.at
				}
			}
			if ended != tt.wrong {
				t.Errorf("ended at %d, want %d", ended, tt.wrong)
			}
		})
	}
}

// see hears the states and compares them.
func (d *Divergence) see(now time.Time, own *States, said string) map[string]Comparison {
	for _, one := range strings.Fields(said) {
		id, hash, _ := strings.Cut(one, ":")
		at := StateAt{}
		if hash != "" {
			at = StateAt{10, uint64(hash[0])}
		}
		d.Heard(id, at)
	}
	return d.Compare(now, own)
}

// TestAStateAheadIsComparedWhenTheNodeGetsThere: and what comes meanwhile does not
// take its place, or a node that is always behind would compare nothing.
func TestAStateAheadIsComparedWhenTheNodeGetsThere(t *testing.T) {
	now := time.Unix(1000, 0)
	own, d := &States{}, NewDivergence()
	own.add(5, 5)
	d.Heard("2", StateAt{10, 1})
	if began := d.Compare(now, own); len(began) > 0 {
		t.Errorf("compared with a state that is not there: %v", began)
	}
	d.Heard("2", StateAt{1000, 1})
	own.add(9, 9)
	own.add(11, 11)
	if c := d.Compare(now, own)["2"]; c.Index != 10 || c.Own != 9 || c.Other != 1 {
		t.Errorf("compared %+v, want the state after entry 9, which is that at 10", c)
	}
	d.Heard("2", StateAt{12, 1})
	own.replace()
	own.add(20, 20)
	if began := d.Compare(now, own); len(began) > 0 || len(d.waiting) > 0 || len(d.newest) > 0 {
		t.Errorf("after a snapshot: %v, waiting %v, compared %v", began, d.waiting, d.newest)
	}
}

// TestTheStateOfASnapshotIsNotCompared: of two recovered survivors each begins with a
// snapshot of its own, and both may end at one index with different states. The first
// entry after it is compared, as on any node that was restored from a snapshot.
func TestTheStateOfASnapshotIsNotCompared(t *testing.T) {
	now := time.Unix(1000, 0)
	own, d := &States{}, NewDivergence()
	d.Heard("2", StateAt{91, 1})
	own.replace() // by a snapshot that ends at 91
	if began := d.Compare(now, own); len(began) > 0 || own.Newest().Index != 0 {
		t.Errorf("the snapshot's state is compared, or told: %v, %v", began, own.Newest())
	}
	own.add(92, 92)
	d.Compare(now, own)
	d.Heard("2", StateAt{92, 1})
	if c := d.Compare(now, own)["2"]; c.Index != 92 || c.Own != 92 {
		t.Errorf("after an entry: %+v", c)
	}
}

// TestADifferenceIsReportedWhenItBegins: once, and once more after the states were
// the same or nothing was heard for long.
func TestADifferenceIsReportedWhenItBegins(t *testing.T) {
	own, d := &States{}, NewDivergence()
	own.add(10, 'a')
	for _, l := range []struct {
		look
		begins bool
	}{
		{look{0, "2:b"}, true},
		{look{1000, "2:b"}, false},
		{look{2000, "2:a"}, false},
		{look{3000, "2:b"}, true},
		{look{9000, "2:b"}, true},
	} {
		began := d.see(time.Unix(1000, 0).Add(time.Duration(l.at)*time.Millisecond), own, l.states)
		if (len(began) == 1) != l.begins {
			t.Errorf("at %d ms: %v begins", l.at, began)
		}
	}
}

// TestWhoDiffers: shown is who had another state lately, until he has the same again.
func TestWhoDiffers(t *testing.T) {
	own, d := &States{}, NewDivergence()
	own.add(10, 'a')
	now := time.Unix(1000, 0)
	for _, step := range []struct {
		pass         time.Duration
		states, want string
	}{
		{0, "2:a 3:a", ""}, {time.Second, "2:b 3:a", "2"}, {time.Second, "3:b", "23"}, {time.Second, "2:a", "3"}, {time.Minute, "", ""},
	} {
		now = now.Add(step.pass)
		d.see(now, own, step.states)
		if got := strings.Join(slices.Sorted(maps.Keys(d.Differing(now))), ""); got != step.want {
			t.Errorf("after %q: %q differ, want %q", step.states, got, step.want)
		}
	}
}
