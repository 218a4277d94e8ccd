package mutant

// Name is the name of a bug.
type Name string

// Bugs of identities.
const (
	// SeedLowers seeds lower without force.
	SeedLowers Name = "seed-lowers"
	// SeedIgnoresExpected seeds whatever the current value is.
	SeedIgnoresExpected Name = "seed-ignores-expected"
	// ClaimNotSteppedOver issues values that are claimed.
	ClaimNotSteppedOver Name = "claim-not-stepped-over"
	// IssuedIsClaimed lets somebody claim a value that was issued.
	IssuedIsClaimed Name = "issued-is-claimed"
	// CounterWraps goes on below zero after 2^63-1.
	CounterWraps Name = "counter-wraps"
	// DeleteResetsCounter begins anew at 1 after an identity was hidden.
	DeleteResetsCounter Name = "delete-resets-counter"
	// DatabasesShared gives the names of all databases one counter.
	DatabasesShared Name = "databases-shared"
	// NamesNotFolded counts Orders and orders apart.
	NamesNotFolded Name = "names-not-folded"
)

// Bugs of HiLo ranges, and of the generator of a client.
const (
	// ReturnLate takes back a range after newer ones were given.
	ReturnLate Name = "return-late"
	// ReturnForeign takes back a range from somebody who has not got its token.
	ReturnForeign Name = "return-foreign"
	// ReturnBelowLow takes back numbers below the range.
	ReturnBelowLow Name = "return-below-low"
	// PeakForgotten gives a range the High of one that came back.
	PeakForgotten Name = "peak-forgotten"
	// MergeKeepsRanges lets a range come back in which a merged Max lies.
	MergeKeepsRanges Name = "merge-keeps-ranges"
	// SetIgnoresExpected sets Max whatever it is.
	SetIgnoresExpected Name = "set-ignores-expected"
	// RangeTagJoined joins a remembered range with the tag of the node that was
	// asked this time.
	RangeTagJoined Name = "range-tag-joined"
	// GeneratorRefillTwice takes the range ahead twice.
	GeneratorRefillTwice Name = "generator-refill-twice"
	// GeneratorReturnsUsed gives back what it handed out when it is closed.
	GeneratorReturnsUsed Name = "generator-returns-used"
)

// Bugs of request ids and sessions.
const (
	// RequestIDForgotten remembers no request id.
	RequestIDForgotten Name = "request-id-forgotten"
	// RequestFingerprintIgnored answers another request under the same id.
	RequestFingerprintIgnored Name = "request-fingerprint-ignored"
	// RequestExpiryIgnored counts a retry again that the window has forgotten.
	RequestExpiryIgnored Name = "request-expiry-ignored"
	// DelayedFirstTry counts a first try that comes after its retry was forgotten.
	DelayedFirstTry Name = "delayed-first-try"
	// RequestWindowDropsNewest keeps the oldest request ids when the window is full.
	RequestWindowDropsNewest Name = "request-window-drops-newest"
	// RequestsNotRestored forgets all request ids with a snapshot.
	RequestsNotRestored Name = "requests-not-restored"
	// SessionForgotten applies a group as often as it is sent.
	SessionForgotten Name = "session-forgotten"
	// RetryUnderNewNumber sends a group of unknown outcome as a new one.
	RetryUnderNewNumber Name = "retry-under-new-number"
)

// Bugs of the state and its snapshots.
const (
	// StateReadsClock has each node look at its own clock.
	StateReadsClock Name = "state-reads-clock"
	// StateDrawsToken has each node draw the token of a range.
	StateDrawsToken Name = "state-draws-token"
	// GroupsInMapOrder applies the groups of an entry in any order.
	GroupsInMapOrder Name = "groups-in-map-order"
	// StateDiverges changes one counter when a node restores a snapshot.
	StateDiverges Name = "state-diverges"
	// DivergenceIgnored lets a node go on whose state differs from the others'.
	DivergenceIgnored Name = "divergence-ignored"
	// SnapshotMissesHidden leaves hidden identities out of snapshots.
	SnapshotMissesHidden Name = "snapshot-misses-hidden"
	// RestoreMerges keeps old claims beside those of a snapshot.
	RestoreMerges Name = "restore-merges"
	// AnchorForgotten looks only into the log for the end of a snapshot.
	AnchorForgotten Name = "anchor-forgotten"
	// BootstrapBroken takes a term alone for a cluster.
	BootstrapBroken Name = "bootstrap-broken"
)

// Bugs of what callers are told.
const (
	// UnknownIsFailed says of a lost leader's entry that it is in no log.
	UnknownIsFailed Name = "unknown-is-failed"
	// UnknownIsAnswered answers a call of unknown outcome from the local state.
	UnknownIsAnswered Name = "unknown-is-answered"
	// AnswersSwapped gives one caller's answer to another.
	AnswersSwapped Name = "answers-swapped"
	// OperationLost forgets one of the callers that a group waited for.
	OperationLost Name = "operation-lost"
	// BatchFailsAsOne fails all calls of a message for one that is bad.
	BatchFailsAsOne Name = "batch-fails-as-one"
	// StaleLeaderReads lets a leader read without asking a quorum.
	StaleLeaderReads Name = "stale-leader-reads"
	// FollowerReadsLocally lets a follower read without a read index.
	FollowerReadsLocally Name = "follower-reads-locally"
	// ReadsBeforeApplied reads before the state has come to the read index.
	ReadsBeforeApplied Name = "reads-before-applied"
	// OutageWaitedOut lets callers wait for a leader for as long as it takes.
	OutageWaitedOut Name = "outage-waited-out"
)

// Bugs of server-side ids and node tags.
const (
	// EtagBeforeReserved publishes a block before it is written.
	EtagBeforeReserved Name = "etag-before-reserved"
	// EtagNotSynced does not wait until a block is on disk.
	EtagNotSynced Name = "etag-not-synced"
	// CeilingIgnored goes on from the disk, whatever the cluster knows.
	CeilingIgnored Name = "ceiling-ignored"
	// EtagWithoutCeiling lets counters run for which the cluster keeps no ceiling.
	EtagWithoutCeiling Name = "etag-without-ceiling"
	// CleanStopKept believes in a clean stop long after the next start.
	CleanStopKept Name = "clean-stop-kept"
	// TagGivenAgain gives the tag of a removed node to another.
	TagGivenAgain Name = "tag-given-again"
)

// Bugs of Raft.
const (
	// CommitBeyondEntries lets a follower commit entries of its own that no leader
	// has compared with its log.
	CommitBeyondEntries Name = "commit-beyond-entries"
)

// Bugs of the log on disk.
const (
	// LogNotSynced says that an entry is on disk before it is.
	LogNotSynced Name = "log-not-synced"
	// LogSumIgnored takes records with a wrong checksum.
	LogSumIgnored Name = "log-sum-ignored"
	// LogSegmentDropped drops segments that have entries of the log.
	LogSegmentDropped Name = "log-segment-dropped"
	// LogDraftNotSynced uses a prepared segment whose name is not on disk.
	LogDraftNotSynced Name = "log-draft-not-synced"
)

// Bugs of the guard against data directories that were set back.
const (
	// SetBackUnnoticed greets a member that has lost what it acknowledged.
	SetBackUnnoticed Name = "set-back-unnoticed"
)
