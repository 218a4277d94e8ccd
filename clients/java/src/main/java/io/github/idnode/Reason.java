package io.github.idnode;

import java.util.function.Function;

/** Why a call failed, by the API's own names, and the exception that says so. */
public enum Reason {
  /** It may have happened. */
  OUTCOME_UNKNOWN(OutcomeUnknownException::new),
  /** There is no leader, or no majority that follows it. */
  NO_QUORUM(NoQuorumException::new),
  /** There is a leader, and it does not answer the node. */
  LEADER_UNREACHABLE(NoQuorumException::new),
  /** No node was reached. */
  NO_ENDPOINT(NoEndpointException::new),
  /** The nodes that answer belong to another cluster. */
  OTHER_CLUSTER(OtherClusterException::new),
  /** The client or the handle was closed. */
  CLIENT_CLOSED(ClosedException::new),
  /** The thread was interrupted. */
  INTERRUPTED(CallInterruptedException::new),
  /** The time to wait for a HiLo range or a Snowflake id was over. */
  DEADLINE(DeadlineException::new),
  /** The node starts, or does not know yet how new a request id is. */
  STARTING,
  /** The node stops. */
  STOPPING,
  /** The node was cut off for too long to give HiLo ranges. */
  RESERVE_TOO_OLD,
  /** The audit log could not be written. */
  AUDIT_FAILED,
  /** The node has no confirmed tag, and so gives no server-side ids. */
  TAG_NOT_ASSIGNED,
  /** The node that was asked is no member, or no longer one. */
  TAG_NOT_MEMBER,
  /** There is no cluster yet. */
  NOT_FORMED,
  /** The node is about to end, because its data is damaged. */
  CORRUPT,
  /** A fault of the node, of which its log says more. */
  INTERNAL,
  /** The caller has reached a limit of its own. */
  RATE_LIMITED(RateLimitedException::new),
  /** There are too many calls. */
  OVERLOADED(OverloadedException::new),
  /** A limit on names, claims or sizes is reached. */
  QUOTA(QuotaException::new),
  /** A disk is nearly full. */
  STORAGE_FULL(StorageFullException::new),
  /** No numbers are left. */
  COUNTER_EXHAUSTED(ExhaustedException::new),
  /** An expected value is not the current one. */
  CONCURRENCY(ConcurrencyException::new),
  /** The id is claimed, or was issued by an identity. */
  ID_CLAIMED(IdClaimedException::new),
  /** The request id was used for another request. */
  REQUEST_ID_REUSED(RequestIdReusedException::new),
  /** The request id is no longer remembered. */
  REQUEST_ID_EXPIRED(RequestIdExpiredException::new),
  /** There is no such identity. */
  IDENTITY_NOT_FOUND,
  /** There is no such HiLo counter. */
  HILO_NOT_FOUND,
  /** The id is not claimed. */
  CLAIM_NOT_FOUND,
  /** There is no such series. */
  SERIES_NOT_FOUND,
  /** The series has no numbers in such a scope. */
  SCOPE_NOT_FOUND,
  /** The key has no number. */
  NUMBER_NOT_FOUND,
  /** The key has another number than the call says. */
  KEY_CONFLICT(KeyConflictException::new),
  /** The series gives no numbers until somebody has looked into the books. */
  SERIES_SUSPENDED(SeriesSuspendedException::new),
  /** The series has as many keys or scopes as it may, or no more digits. */
  SERIES_FULL,
  /** The scope was closed. */
  SCOPE_CLOSED,
  /** The date is before the greatest one of the scope. */
  DATE_GOES_BACK,
  /** Too many numbers of the scope are open. */
  TOO_MANY_OPEN,
  /** The number was confirmed, voided or released already. */
  NUMBER_STATE,
  /** The number's time ended, and another document has it. */
  RESERVATION_EXPIRED(ReservationExpiredException::new),
  /** There is no such pool of workers. */
  POOL_NOT_FOUND,
  /** The pool has another layout or window. */
  POOL_DIFFERS,
  /** All workers of the pool are in use; the message says when the first window ends. */
  POOL_FULL,
  /** The layout of the pool has no time left. */
  POOL_ENDED,
  /** The window of the worker has passed, or the lease is another's. */
  LEASE_PASSED,
  /** The clocks of this machine and the leader are more than 10 s apart; the message says by how much. */
  CLOCK_SKEW,
  /** The window of the worker begins later than the timeout allows; {@link IdnodeException#retryAfter} says when. */
  WINDOW_EARLY,
  /** The caller has no right to it. */
  PERMISSION_DENIED(PermissionDeniedException::new),
  /** The request is wrong, as {@link IdnodeException#field} and the message say: any of the API's INVALID_ reasons. */
  INVALID,
  /** The answer named no reason. */
  NONE,
  /** A reason that this version of the client does not know; the message begins with its name. */
  OTHER;

  final Function<Problem, IdnodeException> exception; // Null if the status code determines it.

  Reason() { this(null); }

  Reason(Function<Problem, IdnodeException> exception) { this.exception = exception; }

  static Reason of(String name) {
    if (name.isEmpty()) return NONE;
    if (name.startsWith("INVALID_")) return INVALID;
    for (var reason : values()) if (reason.name().equals(name)) return reason;
    return OTHER;
  }
}
