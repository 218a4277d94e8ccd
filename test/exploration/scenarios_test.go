package exploration

import (
	"slices"
	"time"
)

// scenarios are the worlds that are explored.
var scenarios = []scenario{
	{
		// A leader is lost, with what it has in its log.
		name: "IDENTITY", window: 2,
		calls: []call{
			{name: "Ann's next", who: 0, node: 0},
			{name: "Bob's next", who: 1, node: 1},
		},
		budget: budget{changes: 1, losses: 1, repeats: 1},
	},
	{
		// Callers and nodes wait no longer, and others go on.
		name: "NUMBERS", window: 2,
		calls: []call{
			{name: "Bob's next", who: 0, node: 1},
			{name: "Ben's next", who: 1, node: 1},
		},
		budget: budget{changes: 1, losses: 1, expiries: 1},
	},
	{
		// A member crashes, with what it has not synced.
		name: "CRASH", window: 2,
		calls: []call{
			{name: "Ann's next", who: 0, node: 0},
			{name: "Bob's next", who: 1, node: 1},
		},
		budget: budget{crashes: 1, losses: 1},
	},
	{
		// And announces itself again, maybe twice.
		name: "RESTART", window: 2, long: true,
		calls: []call{
			{name: "Ann's next", who: 0, node: 0},
			{name: "Abe's next", who: 1, node: 0},
		},
		budget: budget{crashes: 1, losses: 1, repeats: 1},
	},
	{
		// A call is made again at another node, which may begin with a snapshot.
		name: "SNAPSHOT", window: 2, long: true,
		calls: []call{
			{name: "Ann's next", who: 0, node: 0, request: 1},
			{name: "Ann's retry", who: 0, node: 1, request: 1, retry: true, follows: 1},
		},
		budget: budget{changes: 1, losses: 1, snapshots: 1},
	},
	{
		// A member starts again from its snapshot, or installs one while it was behind.
		name: "RESTORE", window: 2,
		calls: []call{
			{name: "Ann's next", who: 0, node: 0, request: 1},
			{name: "Ann's retry", who: 0, node: 1, request: 1, retry: true, follows: 1},
		},
		budget: budget{crashes: 1, snapshots: 1},
	},
	{
		// And another call pushes it out of the window of request ids.
		name: "WINDOW", window: 1, lagging: true,
		calls: []call{
			{name: "Ann's next", who: 0, node: 0, request: 1},
			{name: "Ann's retry", who: 0, node: 1, request: 1, retry: true, follows: 1},
			{name: "Bob's next", who: 2, node: 1, request: 2},
		},
		budget: budget{losses: 1, repeats: 1},
	},
	{
		// Or two do.
		name: "WINDOW2", window: 2, long: true,
		calls: []call{
			{name: "Ann's next", who: 0, node: 0, request: 1},
			{name: "Ann's retry", who: 0, node: 1, request: 1, retry: true, follows: 1},
			{name: "Bob's next", who: 2, node: 1, request: 2},
			{name: "Cid's next", who: 3, node: 0, request: 3},
		},
		budget: budget{losses: 1},
	},
	{
		// All members but one are lost, which may lag, between a try and its repetition.
		name: "RECOVERY", window: 2, lagging: true, long: true,
		calls: []call{
			{name: "Bob's next", who: 0, node: 0},
			{name: "Ann's next", who: 1, node: 0, request: 1, follows: 1},
			{name: "Ann's retry", who: 1, node: 1, request: 1, retry: true, follows: 2},
			{name: "Cid's next", who: 2, node: 1, request: 2},
		},
		budget: budget{recoveries: 1},
	},
	{
		// A range is given back twice, amid new ones.
		name: "HILO", window: 2,
		calls: []call{
			{name: "Ann's range", who: 0, node: 0, kind: hiloNext},
			{name: "Ann's return", who: 1, node: 0, kind: hiloReturn, follows: 1},
			{name: "Ann's return again", who: 2, node: 1, kind: highReturn, follows: 1},
			{name: "Bob's range", who: 3, node: 1, kind: hiloNext},
			{name: "Cid's range", who: 4, node: 0, kind: hiloNext},
		},
		budget: budget{losses: 1},
	},
	{
		// Somebody gives back a range that is not hers.
		name: "TOKEN", window: 2,
		calls: []call{
			{name: "Bob's range", who: 0, node: 1, kind: hiloNext},
			{name: "Eve's return of it", who: 1, node: 0, kind: strangerReturn, follows: 1},
			{name: "Bob's return", who: 2, node: 1, kind: hiloReturn, follows: 1},
			{name: "Ann's range", who: 3, node: 0, kind: hiloNext},
		},
		budget: budget{losses: 1},
	},
	{
		name: "CLAIM", window: 2,
		calls: []call{
			{name: "Ann's claim", who: 0, node: 0, kind: claim},
			{name: "Ann's release", who: 1, node: 0, kind: release, follows: 1},
			{name: "Bob's next", who: 2, node: 1},
			{name: "Bob's claim", who: 3, node: 1, kind: claim},
		},
		budget: budget{changes: 1},
	},
	{
		// A document's number is asked for at two nodes, while the leader is lost.
		name: "SERIES", window: 2, long: true,
		calls: []call{
			{name: "Ann's number", who: 0, node: 0, kind: takeNumber, document: "a"},
			{name: "Ann's number again", who: 1, node: 1, kind: takeNumber, document: "a"},
			{name: "Bob's number", who: 2, node: 1, kind: takeNumber, document: "b"},
		},
		budget: budget{changes: 1, losses: 1},
	},
	{
		// A number is given back and given to another, on members that start again.
		name: "RELEASE", window: 2, long: true,
		calls: []call{
			{name: "Ann's number", who: 0, node: 0, kind: takeNumber, document: "a"},
			{name: "Ann's release", who: 1, node: 0, kind: giveBack, document: "a", follows: 1},
			{name: "Bob's number", who: 2, node: 1, kind: takeNumber, document: "b"},
		},
		budget: budget{crashes: 1, snapshots: 1},
	},
	{
		// Two documents have one number from elsewhere, as somebody says, and others take theirs meanwhile.
		name: "ELSEWHERE", window: 2, long: true,
		calls: []call{
			{name: "Ann's number", who: 0, node: 0, kind: takeNumber, document: "a"},
			{name: "Eve's number 3", who: 1, node: 1, kind: takeNumber, document: "e", number: 3},
			{name: "Eve's number 3 again", who: 2, node: 0, kind: takeNumber, document: "e", number: 3},
			{name: "Dan's number 3", who: 3, node: 1, kind: takeNumber, document: "d", number: 3},
			{name: "Bob's number", who: 4, node: 1, kind: takeNumber, document: "b"},
		},
		budget: budget{losses: 1},
	},
	{
		// A day passes with which a range of numbers ends, and the next range is taken back.
		name: "ALLOTMENT", window: 2, long: true,
		calls: []call{
			{name: "Ann's number", who: 0, node: 0, kind: takeAllotted, document: "a"},
			{name: "Bob's number", who: 1, node: 1, kind: takeAllotted, document: "b"},
			{name: "the withdrawal", who: 2, node: 0, kind: withdraw, at: day},
			{name: "Cid's number", who: 3, node: 1, kind: takeAllotted, document: "c", at: day},
			{name: "Dan's number", who: 4, node: 1, kind: takeAllotted, document: "d"},
		},
		budget: budget{losses: 1},
	},
	{
		// Two backups are merged, in which more ranges have begun, and numbers go on.
		name: "BACKUPS", window: 2, long: true,
		calls: []call{
			{name: "the older backup", who: 0, node: 0, kind: mergeBackup, backup: 1},
			{name: "the newer backup", who: 1, node: 1, kind: mergeBackup, backup: 2},
			{name: "the resumption", who: 2, node: 0, kind: resume, follows: 1},
			{name: "Ann's number", who: 3, node: 0, kind: takeAllotted, document: "a"},
			{name: "Bob's number", who: 4, node: 1, kind: takeAllotted, document: "b", at: day},
		},
		budget: budget{losses: 1},
	},
	{
		// A worker's window is renewed, given back, or passes, while another asks for the worker.
		name: "WORKER", window: 2,
		calls: []call{
			{name: "Ann's lease", who: 0, node: 0, kind: lease},
			{name: "Ann's renewal", who: 1, node: 0, kind: renew, at: 5 * time.Second, follows: 1},
			{name: "Ann's release", who: 2, node: 0, kind: free, at: 6 * time.Second, follows: 1},
			{name: "Bob's lease", who: 3, node: 1, kind: lease, at: 6*time.Second + 500*time.Millisecond},
			{name: "Bob's next lease", who: 4, node: 1, kind: lease, at: 15*time.Second + 500*time.Millisecond},
		},
		budget: budget{losses: 1},
	},
	{
		// A backup is merged whose counters are within a range that may come back.
		name: "MERGE", window: 2,
		calls: []call{
			{name: "Ann's range", who: 0, node: 0, kind: hiloNext},
			{name: "Ann's return", who: 1, node: 0, kind: hiloReturn, follows: 1},
			{name: "Ann's next range", who: 2, node: 0, kind: hiloNext},
			{name: "the merge", who: 3, node: 1, kind: merge},
			{name: "Bob's next", who: 4, node: 1},
		},
		budget: budget{losses: 1},
	},
}

// has reports whether there are calls of a kind.
func (s scenario) has(k kind) bool {
	return slices.ContainsFunc(s.calls, func(c call) bool { return c.kind == k })
}

// alone reports whether a node takes one call.
func (s scenario) alone(node uint8) bool {
	n := 0
	for _, c := range s.calls {
		if c.node == node {
			n++
		}
	}
	return n == 1
}

// more returns a scenario with more faults of each kind that it has.
func (s scenario) more(n uint8) scenario {
	b := &s.budget
	for _, faults := range []*uint8{&b.changes, &b.crashes, &b.snapshots, &b.losses, &b.repeats, &b.expiries} {
		if *faults > 0 {
			*faults += n
		}
	}
	return s
}
