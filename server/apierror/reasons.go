package apierror

// Reasons of errors, as callers see them. They are part of the API: a reason is
// never renamed, and never used for anything else.
const (
	// The form of a request. Each goes with InvalidArgument and a field.
	ReasonInvalidID          = "INVALID_ID"
	ReasonInvalidSeparator   = "INVALID_SEPARATOR"
	ReasonInvalidTag         = "INVALID_TAG"
	ReasonInvalidName        = "INVALID_NAME"
	ReasonInvalidDatabase    = "INVALID_DATABASE"
	ReasonInvalidNodeTag     = "INVALID_NODE_TAG"
	ReasonInvalidCount       = "INVALID_COUNT"
	ReasonInvalidClaim       = "INVALID_CLAIM"
	ReasonInvalidBlocksOnly  = "INVALID_BLOCKS_ONLY"
	ReasonInvalidTimeOrdered = "INVALID_TIME_ORDERED"
	ReasonInvalidRequestID   = "INVALID_REQUEST_ID"
	ReasonInvalidSize        = "INVALID_SIZE"
	ReasonInvalidLastMax     = "INVALID_LAST_MAX"
	ReasonInvalidLastRangeAt = "INVALID_LAST_RANGE_AT"
	ReasonInvalidLow         = "INVALID_LOW"
	ReasonInvalidHigh        = "INVALID_HIGH"
	ReasonInvalidLast        = "INVALID_LAST"
	ReasonInvalidToken       = "INVALID_TOKEN"
	ReasonInvalidLabel       = "INVALID_LABEL"
	ReasonInvalidNumber      = "INVALID_NUMBER"
	ReasonInvalidMax         = "INVALID_MAX"
	ReasonInvalidExpected    = "INVALID_EXPECTED"
	ReasonInvalidPrefix      = "INVALID_PREFIX"
	ReasonInvalidPageSize    = "INVALID_PAGE_SIZE"
	ReasonInvalidPageToken   = "INVALID_PAGE_TOKEN"
	ReasonInvalidConsistency = "INVALID_CONSISTENCY"
	ReasonInvalidSetting     = "INVALID_SETTING"
	ReasonInvalidFloor       = "INVALID_FLOOR"
	ReasonInvalidMerge       = "INVALID_MERGE"
	ReasonInvalidCorrelation = "INVALID_CORRELATION"
	ReasonInvalidTimeout     = "INVALID_TIMEOUT"
	ReasonInvalidRoles       = "INVALID_ROLES"
	ReasonInvalidSeries      = "INVALID_SERIES"
	ReasonInvalidPool        = "INVALID_POOL"
	// ReasonInvalidRequest is for requests that only the state machine found malformed, and for
	// requests that an API could not read.
	ReasonInvalidRequest = "INVALID_REQUEST"

	// Unavailable: nothing happened, another try or another node may do.
	ReasonNoQuorum = "NO_QUORUM"
	// ReasonLeaderUnreachable is for a node whose leader does not answer it.
	ReasonLeaderUnreachable = "LEADER_UNREACHABLE"
	ReasonStarting          = "STARTING"
	ReasonStopping          = "STOPPING"
	// ReasonWindowEarly is for Snowflake ids of a node whose window begins later.
	ReasonWindowEarly = "WINDOW_EARLY"
	// ReasonReserveTooOld is for a range, from a node that was cut off for so long that it no
	// longer takes ranges from its reserve.
	ReasonReserveTooOld = "RESERVE_TOO_OLD"
	// ReasonAuditFailed is for calls that the audit log cannot record.
	ReasonAuditFailed = "AUDIT_FAILED"
	// ReasonOutcomeUnknown goes with Unavailable where the same call again is
	// safe, and with Aborted where it is not.
	ReasonOutcomeUnknown = "OUTCOME_UNKNOWN"

	// ResourceExhausted.
	ReasonRateLimited = "RATE_LIMITED"
	ReasonOverloaded  = "OVERLOADED"
	ReasonQuota       = "QUOTA"
	ReasonStorageFull = "STORAGE_FULL"
	ReasonPoolFull    = "POOL_FULL"

	// OutOfRange.
	ReasonCounterExhausted = "COUNTER_EXHAUSTED"
	ReasonSeriesFull       = "SERIES_FULL"
	ReasonPoolEnded        = "POOL_ENDED"
	// ReasonConcurrency goes with Aborted.
	ReasonConcurrency = "CONCURRENCY"

	// AlreadyExists.
	ReasonIDClaimed       = "ID_CLAIMED"
	ReasonRequestIDReused = "REQUEST_ID_REUSED"
	ReasonKeyConflict     = "KEY_CONFLICT"

	// FailedPrecondition.
	ReasonRequestIDExpired   = "REQUEST_ID_EXPIRED"
	ReasonNodeTagNotAssigned = "NODE_TAG_NOT_ASSIGNED"
	ReasonNodeTagTaken       = "NODE_TAG_TAKEN"
	ReasonNotAMember         = "NOT_A_MEMBER"
	ReasonLastVoter          = "LAST_VOTER"
	ReasonLosesQuorum        = "LOSES_QUORUM"
	ReasonMemberUnreachable  = "MEMBER_UNREACHABLE"
	ReasonNotTransferred     = "NOT_TRANSFERRED"
	ReasonNotFormed          = "NOT_FORMED"
	ReasonOtherCluster       = "OTHER_CLUSTER"
	ReasonFormatUnsupported  = "FORMAT_UNSUPPORTED"
	// These are of series of document numbers.
	ReasonSeriesSuspended    = "SERIES_SUSPENDED"
	ReasonSeriesDiffers      = "SERIES_DIFFERS"
	ReasonSeriesInUse        = "SERIES_IN_USE"
	ReasonScopeClosed        = "SCOPE_CLOSED"
	ReasonDateGoesBack       = "DATE_GOES_BACK"
	ReasonTooManyOpen        = "TOO_MANY_OPEN"
	ReasonNumberState        = "NUMBER_STATE"
	ReasonReservationExpired = "RESERVATION_EXPIRED"
	// These are of pools of workers.
	ReasonPoolDiffers = "POOL_DIFFERS"
	ReasonPoolInUse   = "POOL_IN_USE"
	ReasonLeasePassed = "LEASE_PASSED"
	ReasonClockSkew   = "CLOCK_SKEW"

	// NotFound.
	ReasonIdentityNotFound = "IDENTITY_NOT_FOUND"
	ReasonHiLoNotFound     = "HILO_NOT_FOUND"
	ReasonClaimNotFound    = "CLAIM_NOT_FOUND"
	ReasonMemberNotFound   = "MEMBER_NOT_FOUND"
	ReasonSeriesNotFound   = "SERIES_NOT_FOUND"
	ReasonScopeNotFound    = "SCOPE_NOT_FOUND"
	ReasonNumberNotFound   = "NUMBER_NOT_FOUND"
	ReasonPoolNotFound     = "POOL_NOT_FOUND"

	// ReasonPermissionDenied goes with PermissionDenied.
	ReasonPermissionDenied = "PERMISSION_DENIED"
	// ReasonCertificateEnded goes with Unauthenticated: nothing happened, and the connection ends.
	ReasonCertificateEnded = "CERTIFICATE_ENDED"

	// ReasonCorrupt goes with DataLoss: the node is about to end.
	ReasonCorrupt = "CORRUPT"
	// ReasonInternal goes with Internal: the log has the cause.
	ReasonInternal = "INTERNAL"
)
