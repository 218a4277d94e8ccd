package main

import "time"

// bug is a planted bug, and what looks for it.
type bug struct {
	// name is its patch's.
	name string
	// quick says that it is tried where there is no time for all: one of each part that the
	// explorations' planted bugs are not in, found within seconds.
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
	{name: "nodes-ids-are-claimed", others: test("server/service", "TestWhatANodeGaveIsNotClaimed")},
	{name: "issued-is-claimed"},
	{name: "counter-wraps"},
	{name: "delete-resets-counter"},
	{name: "databases-shared"},
	{name: "ended-databases-released-ids-stay", others: test("fsm", "TestADatabaseEnds")},
	{name: "names-not-folded"},

	// HiLo ranges, and the generator of a client.
	{name: "return-late"},
	{name: "return-foreign"},
	// In the simulation all callers have one name.
	{name: "return-by-anybody", others: test("fsm", "TestTranscripts")},
	{name: "return-below-low"},
	{name: "peak-forgotten"},
	{name: "merge-keeps-ranges"},
	{name: "set-ignores-expected"},
	{name: "range-tag-joined"},
	{name: "reserve-gives-twice"},
	{name: "reserve-returns-used", others: test("server/reserve", "TestNoNumberComesTwice")},
	{name: "reserve-gives-taken", others: test("server/reserve", "TestNumbersThatSomethingElseTookAreDiscarded")},
	{name: "reserve-not-issued"},
	{name: "reserve-grant-outlives-discard", others: test("server/reserve", "TestAGrantIsDiscardedBeforeItsAnswer")},
	{name: "reserve-given-after-return", others: test("server/reserve", "TestAStopReturnsWhatIsNewest")},
	{name: "generator-refill-twice"},
	{name: "generator-returns-used"},

	// Series of document numbers.
	{name: "key-forgotten-by-restore", quick: true},
	{name: "released-forgotten-by-restore", others: test("fsm", "TestHostileFields")},
	{name: "key-asked-for-twice"},
	{name: "voided-given-again"},
	{name: "confirm-after-reuse", others: test("series", "TestAgainstTheModel")},
	{name: "expiry-by-own-clock"},
	{name: "expired-is-open", others: test("series", "TestAgainstTheModel")},
	{name: "batch-applied-in-half"},
	{name: "voided-date-binds", others: test("series", "TestAgainstTheModel")},
	{name: "middle-given-again", others: test("series", "TestAgainstTheModel")},
	{name: "ended-allotment-gives", others: test("series", "TestAgainstTheModel")},
	{name: "allotment-begins-twice", others: test("series", "TestAllotmentsOfTwoClusters")},
	{name: "used-up-allotment-gives", others: explored("ALLOTMENT")},
	// No cluster of the simulation restores a backup.
	{name: "merged-allotment-forgets-begin", others: explored("BACKUPS")},
	{name: "begin-forgotten-by-snapshot", others: test("series", "TestABeginIsInFrozenCopies")},
	{name: "entered-forgotten-by-snapshot", others: test("series", "TestNumbersFromElsewhere")},
	{name: "entered-number-has-two-keys", others: test("series", "TestEnteredTwice")},
	// No cluster of the simulation restores a backup.
	{name: "released-given-after-restore", others: test("fsm", "TestTwoBackupsInAnyOrder")},
	{name: "older-backup-wins", others: test("fsm", "TestTwoBackupsInAnyOrder")},
	{name: "unknown-forgotten-by-snapshot", others: test("series", "TestAgainstTheModel")},
	{name: "final-series-redefined", others: test("series", "TestAgainstTheModel")},
	{name: "old-definition-counts", others: test("server/service", "TestATakeOnANodeBehindADefinition")},
	{name: "record-before-all-is-forgotten", others: test("series", "TestSuspendedInPortions")},
	{name: "active-series-takes-books", others: test("series", "TestASuspendedSeries")},
	// No run of the simulation is longer than a day.
	{name: "date-judged-again", others: test("series", "TestARetryHasTheSameNumber")},

	// Snowflake ids: the windows of workers, and the generator of a client.
	{name: "window-handed-on-early", others: test("snowflake", "TestWindowsNeverOverlap", "-rapid.nofailfile")},
	{name: "renewed-after-its-end", others: test("snowflake", "TestTheLifeOfALease")},
	{name: "evicted-is-renewed", others: test("snowflake", "TestAnEvictedLeaseEnds")},
	{name: "own-clock-judged", others: test("fsm", "TestTranscripts")},
	{name: "release-forgets-last", others: test("snowflake", "TestWindowsNeverOverlap", "-rapid.nofailfile")},
	{name: "restore-without-skip", others: test("snowflake", "TestForgottenLeases")},
	{name: "forgotten-window-is-the-own", others: test("snowflake", "TestTheLongerForgottenWindowCounts")},
	{name: "pool-begins-before-deleted-ones", others: test("fsm", "TestWindowsNeverOverlapThroughDeletions", "-rapid.nofailfile")},
	{name: "recovery-forgets-deleted-pools", others: test("fsm", "TestARecoveryKeepsWhereNewPoolsBegin")},
	{name: "window-beyond-a-day", others: test("fsm", "TestAPoolThatForgotIsRestored")},
	{name: "closed-lease-goes-on", others: test("snowflake", "TestTwoGeneratorsOfOneWorker")},

	// Request ids and sessions.
	{name: "request-id-forgotten"},
	{name: "index-of-another-log", others: test("fsm", "TestARetryOfALostCall")},
	{name: "recovery-index-stays", others: test("fsm", "TestARecoveryBetweenTryAndRetry")},
	{name: "request-id-of-everybody", others: test("server/service", "TestEveryCallOwnsItsRequestID")},
	{name: "request-fingerprint-ignored"},
	{name: "request-expiry-ignored"},
	{name: "delayed-first-try"},
	{name: "request-window-drops-newest"},
	// In the simulation all callers have one name.
	{name: "flood-pushes-out-others", others: test("fsm", "TestAFloodPushesOutItsOwn")},
	{name: "floor-lost-with-share", others: test("fsm", "TestFirstTryAfterItsRetryWasForgotten")},
	{name: "requests-not-restored"},
	{name: "start-forgets-requests", others: explored("RESTORE")},
	{name: "session-forgotten"},
	{name: "retry-under-new-number"},
	{name: "number-used-again", others: explored("NUMBERS")},
	// A session is lost under a node that lives on: an announcement must come twice.
	{name: "stale-session-requeued", others: explored("RESTART")},
	// A late copy is rare in the simulation. Of one that is answered as stale no caller hears:
	// the model alone sees it.
	{name: "acknowledged-applied-again", others: explored("RESTART")},
	{name: "copy-is-stale", others: explored("IDENTITY")},

	// The state and its snapshots.
	{name: "state-reads-clock", quick: true},
	{name: "state-draws-token"},
	{name: "groups-in-map-order"},
	{name: "state-diverges"},
	{name: "divergence-ignored"},
	{name: "snapshot-misses-hidden"},
	// No run of the simulation has more series than are frozen at once.
	{name: "snapshot-shares-series", others: test("fsm", "TestWhatASnapshotFreezesLater")},
	// A node that has a state must be so far behind that it needs a snapshot, after a release.
	{name: "restore-merges", others: test("fsm", "TestNothingOfBeforeIsLeftAfterARestore")},
	// The cluster heals itself with the next snapshot, so the simulation seldom sees it.
	{name: "anchor-forgotten", others: test("cluster/raftguard", "TestEntriesAfterAnInstalledSnapshot")},
	// A node must get a snapshot from a former leader.
	{name: "covered-entries-are-rejected", others: test("test/papertest", "TestALeaderWithAnOlderSnapshotGoesOn")},
	{name: "another-history-joins", others: test("test/papertest", "TestALeaderWithAnOlderSnapshotGoesOn")},
	{name: "bootstrap-broken", others: test("cluster/raftguard", "TestACrashWithinTheBootstrap")},

	// What callers are told.
	{name: "unknown-is-failed"},
	{name: "unknown-is-answered"},
	{name: "answers-swapped", quick: true},
	{name: "block-named-for-a-place", others: test("client", "TestCallersRepeatUntilTheyKnow")},
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
	{name: "token-kept"},

	// Raft. A leader must be slow at the right moment: mostly some hundred seeds, at
	// times more.
	{name: "commit-beyond-entries", others: test("cluster/transport", "TestCommitIndexIsBoundedByTheEntriesSent")},

	// What a leader writes while it is sent.
	{name: "answer-before-own-disk", others: test("test/papertest", "TestALeaderWritesBesideSending")},
	{name: "configuration-beside-replication", others: test("test/papertest", "TestAConfigurationIsOnTheLeadersDiskFirst")},
	{name: "term-before-entries", others: test("cluster/raftguard", "TestNothingElseIsWrittenBeforeTheEntries")},
	{name: "unwritten-entry-witnessed", others: test("cluster/transport", "TestEntriesThatArriveProveNothingOfTheLeadersDisk")},

	// Snapshots of the simulation's seeds are small, and its links quick.
	{name: "snapshot-progress-untold", others: test("cluster/transport", "TestASnapshotTakesAsLongAsItMoves")},
	{name: "catch-up-forgotten", others: test(simulation, "TestANodeBehindASlowLinkJoins")},
	{name: "vote-without-replication", others: test("cluster/leader", "TestReconcileVoteWithoutReplication")},
	{name: "leader-asks-itself", others: test("cluster/leader", "TestReconcileOwnDemotionTakenBack")},
	// They cost time alone.
	{name: "former-process-kept", others: test(simulation, "TestALostLeaderIsReplacedAfterAMemberRestarted")},
	{name: "calls-hide-a-lost-leader", others: test("cluster/transport", "TestCallsHideNoLostLeader")},
	{name: "unknown-purpose-closed", others: test("cluster/transport", "TestAnUnknownPurposeIsAnotherVersion")},

	// A second vote must make a second leader before others see it; the model sees the first.
	{name: "vote-not-written"},

	// The leader must be lost within the tick after a removal.
	{name: "removed-voter-ends-early", others: test("cluster", "TestARemovedVoterVotesUntilItIsOutOfRaftsConfiguration")},
	{name: "removed-voter-told-early", others: test("cluster", "TestARemovedVoterVotesUntilRaftsConfigurationIsCommitted")},
	{name: "removal-sent-to-removed", others: test("cluster/transport", "TestAMemberIsNotSentTheConfigurationByWhichItLeaves")},

	// Who leads. A node of the simulation has no priority, and a wrong choice costs it time alone.
	{name: "slow-disk-gets-leadership", others: test("cluster/leader", "TestFittest")},
	{name: "lonely-gets-leadership", others: test("cluster/leader", "TestFittest")},
	{name: "one-way-is-in-touch", others: test("cluster/leader", "TestWhoIsInTouchWithAMajority")},
	{name: "unreached-leader-stays", others: test(simulation, "TestAPortIsCut")},
	{name: "priority-zero-keeps-leading", others: test("cluster/leader", "TestLeadershipReturnsByPriority")},
	// A needless election breaks no promise, and nodes of the simulation close no connection as a process that ends does.
	{name: "hint-without-asking", others: test("cluster/leader", "TestLossEvidence")},
	{name: "two-candidates", others: test(simulation, "TestALostLeaderCostsOneElection")},
	// All disks of a majority must be slow for long.
	{name: "slow-leader-calls-in-vain", others: test(simulation, "TestASlowLeaderServes")},
	{name: "election-timeout-fixed", others: test(simulation, "TestSlowDisksElectALeader")},
	{name: "election-timeout-of-own-disk", others: test("cluster/raftguard", "TestTheElectionTimeoutFollowsTheVoters")},
	{name: "lease-of-a-quiet-machine", others: test("cluster/raftguard", "TestTimeoutsFollowGaps")},
	{name: "replaced-leader-is-late", others: test(simulation, "TestLeadersThatStandStill")},
	{name: "round-trip-doubles", others: test(simulation, "TestLeadersThatStandStill")},
	{name: "slow-term-not-forgotten", others: test("cluster/raftguard", "TestTheElectionTimeoutForgets")},
	{name: "idle-leader-stays-slow", others: test("cluster/raftguard", "TestAnIdleLeaderSendsFewAppends")},
	{name: "transfer-timeout-is-no", others: test(simulation, "TestATransferSaysWhatHappened")},
	{name: "stop-waits-for-nobody", others: test(simulation, "TestAllNodesStop")},
	{name: "pre-vote-beside-vote", others: test("test/papertest", "TestNoPreVoteWhereTheVoteIsGiven")},
	{name: "pre-vote-beside-leader", others: test("test/papertest", "TestNoPreVoteWhereTheVoteIsGiven")},
	{name: "heartbeat-waits-for-write", others: test(simulation, "TestSlowFollowersAreServed")},

	// What a node says of itself, and its own log.
	{name: "log-waits-for-its-reader", others: test("internal/logqueue", "TestALogThatNobodyReadsStopsNothing")},
	{name: "main-goroutine-unwatched", others: test("cluster/raftguard", "TestMainGoroutineThatHangs")},
	{name: "unserved-is-ready", others: test(simulation, "TestAPortIsCut")},
	{name: "failed-groups-ignored", others: test("cluster", "TestWhyTheLogIsNotServed")},
	{name: "unannounced-is-ready", others: test("cluster", "TestAnAnnouncementThatTheLogDoesNotTake")},
	{name: "announced-twice-while-behind", others: test("cluster", "TestAnAnnouncementIsRepeatedUntilItIsAppliedHere")},

	// Where members are. All nodes of a simulation must move, or all names fail.
	{name: "listed-address-unused", others: test("cluster", "TestAllMembersMove")},
	{name: "name-forgotten", others: test("cluster/peers", "TestTheLastAddressesOfAName")},
	{name: "hanging-name-waited-for", others: test("cluster", "TestTheLeaderDiesWhileNamesDoNotResolve")},
	{name: "closed-port-unnamed", others: test("cluster", "TestAClosedRaftPortIsNamed")},
	{name: "recovery-asks-registered", others: test("server/recovery", "TestOnlyALostQuorumIsRecovered")},

	// What is too large to send. No call of the simulation is answered with so much.
	{name: "results-unbounded", others: test("fsm/op", "TestResultBound")},
	{name: "merge-judged-by-calls", others: test("transfer", "TestJudgedBeforeAnythingChanges")},
	{name: "merge-above-a-group", others: test("server/service", "TestTheLargestMergesFit")},
	{name: "too-large-sent-again", others: test("cluster/commit", "TestAnAnswerThatIsTooLarge")},

	// The audit log, which the simulation's nodes do not keep.
	{name: "audit-stays-failed", others: test("access/audit", "TestAFullDiskIsTriedAgain")},

	// The log on disk.
	{name: "log-not-synced", quick: true},
	{name: "log-sum-ignored"},
	{name: "log-segment-dropped"},
	{name: "log-draft-not-synced", others: test("cluster/store/wal", "TestCrashBetweenAnyTwoCalls")},
	{name: "log-draft-name-kept", others: test("cluster/store/wal", "TestAFailedSyncOfNamesIsNotForgotten")},

	// The simulation has no bbolt.
	{name: "meta-page-in-memory-only", others: test("internal/boltfile", "TestAMetaPageWhoseSyncFailedReachesTheDisk")},

	// The guard against data directories that were set back.
	{name: "set-back-unnoticed"},
	{name: "live-restore-unnoticed", others: test("cluster/transport", "TestAProcessSetBackWithItsMemoryIsRefusedBothWays")},
	// No operator of the simulation's plans trusts a copy, or starts an emptied cluster.
	{name: "trusted-elects-any", others: test(simulation, "TestTheNewestOfThreeCopiesLeads")},
	{name: "trusted-waits-for-nobody", others: test(simulation, "TestTheNewestOfThreeCopiesLeads")},
	{name: "emptied-cluster-forms", others: test("server/node", "TestClusterIDBeginsNothing")},
}

// explored is the exploration of one scenario.
func explored(scenario string) []killer {
	return test("test/exploration", "TestScenarios", "-scenario", scenario)
}

// test is a test of one package that looks for a bug.
func test(folder, name string, flags ...string) []killer {
	return []killer{{folder, append([]string{"-test.run", name + "$"}, flags...), time.Minute}}
}
