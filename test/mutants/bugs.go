package main

import "time"

// bug is a planted bug, and what looks for it.
type bug struct {
	// name is its patch's.
	name string
	// quick says that it is tried where there is no time for all: of each part one,
	// found within seconds.
	quick bool
	// others are tests that look for it when the simulation has not found it.
	others []killer
}

// bugs are all that are planted, in the order of the table.
var bugs = []bug{
	// Identities.
	{name: "seed-lowers"},
	{name: "seed-ignores-expected"},
	{name: "claim-not-stepped-over"},
	{name: "issued-is-claimed"},
	{name: "counter-wraps"},
	{name: "delete-resets-counter"},
	{name: "databases-shared"},
	{name: "names-not-folded"},

	// HiLo ranges, and the generator of a client.
	{name: "return-late", quick: true},
	{name: "return-foreign"},
	{name: "return-below-low"},
	{name: "peak-forgotten"},
	{name: "merge-keeps-ranges"},
	{name: "set-ignores-expected"},
	{name: "range-tag-joined"},
	{name: "generator-refill-twice"},
	{name: "generator-returns-used"},

	// Request ids and sessions.
	{name: "request-id-forgotten"},
	{name: "request-fingerprint-ignored"},
	{name: "request-expiry-ignored"},
	{name: "delayed-first-try"},
	{name: "request-window-drops-newest", quick: true},
	{name: "requests-not-restored"},
	{name: "session-forgotten"},
	{name: "retry-under-new-number", quick: true},

	// The state and its snapshots.
	{name: "state-reads-clock", quick: true},
	{name: "state-draws-token"},
	{name: "groups-in-map-order"},
	{name: "state-diverges"},
	{name: "divergence-ignored"},
	{name: "snapshot-misses-hidden"},
	{name: "restore-merges"},
	// The cluster heals itself with the next snapshot, so the simulation seldom sees it.
	{name: "anchor-forgotten", others: test("cluster/apply", "TestEntriesAfterAnInstalledSnapshot")},
	{name: "bootstrap-broken"},

	// What callers are told.
	{name: "unknown-is-failed"},
	{name: "unknown-is-answered"},
	{name: "answers-swapped", quick: true},
	{name: "operation-lost"},
	{name: "batch-fails-as-one"},
	{name: "stale-leader-reads"},
	{name: "follower-reads-locally"},
	{name: "reads-before-applied"},
	{name: "outage-waited-out", others: test("cluster/commit", "TestWithoutALeaderEverybodyIsAnsweredAfterLeaderWait")},

	// Server-side ids and node tags. These with other tests need several rare things
	// in a row, more than some thousand seeds have.
	{name: "etag-before-reserved", others: test("etag", "TestAStalledDisk")},
	{name: "etag-not-synced"},
	{name: "ceiling-ignored", others: test("etag", "TestNoEtagComesTwiceFromOldCopies", "-rapid.nofailfile")},
	{name: "etag-without-ceiling"},
	{name: "clean-stop-kept", others: test("fsm", "TestTranscripts")},
	{name: "tag-given-again"},

	// Raft. A leader must be slow at the right moment: mostly some hundred seeds, at
	// times more.
	{name: "commit-beyond-entries", others: test("cluster/transport", "TestCommitIndexIsBoundedByTheEntriesSent")},

	// The log on disk.
	{name: "log-not-synced", quick: true},
	{name: "log-sum-ignored"},
	{name: "log-segment-dropped"},
	{name: "log-draft-not-synced", others: test("cluster/store/wal", "TestCrashBetweenAnyTwoCalls")},

	// The guard against data directories that were set back.
	{name: "set-back-unnoticed"},
}

// test is a test of one package that looks for a bug.
func test(folder, name string, flags ...string) []killer {
	return []killer{{folder, append([]string{"-test.run", name + "$"}, flags...), time.Minute}}
}
