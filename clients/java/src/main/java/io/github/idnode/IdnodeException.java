package io.github.idnode;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;

/**
 * Why a call failed. The subclasses tell the cases apart that a program can act on.
 *
 * @serial exclude
 */
public class IdnodeException extends RuntimeException {
  // By the reason. Of others the status code determines it.
  private static final Map<String, Function<Problem, IdnodeException>> KINDS = Map.ofEntries(
      Map.entry("OUTCOME_UNKNOWN", OutcomeUnknownException::new), Map.entry("NO_QUORUM", NoQuorumException::new),
      Map.entry("LEADER_UNREACHABLE", NoQuorumException::new), Map.entry("NO_ENDPOINT", NoEndpointException::new),
      Map.entry("OTHER_CLUSTER", OtherClusterException::new), Map.entry("CLIENT_CLOSED", ClosedException::new),
      Map.entry("CANCELED", CallInterruptedException::new), Map.entry("DEADLINE_EXCEEDED", DeadlineException::new),
      Map.entry("RATE_LIMITED", RateLimitedException::new), Map.entry("OVERLOADED", OverloadedException::new),
      Map.entry("QUOTA", QuotaException::new), Map.entry("STORAGE_FULL", StorageFullException::new),
      Map.entry("COUNTER_EXHAUSTED", ExhaustedException::new), Map.entry("CONCURRENCY", ConcurrencyException::new),
      Map.entry("ID_CLAIMED", IdClaimedException::new), Map.entry("REQUEST_ID_REUSED", RequestIdReusedException::new),
      Map.entry("REQUEST_ID_EXPIRED", RequestIdExpiredException::new), Map.entry("KEY_CONFLICT", KeyConflictException::new),
      Map.entry("SERIES_SUSPENDED", SeriesSuspendedException::new), Map.entry("RESERVATION_EXPIRED", ReservationExpiredException::new),
      Map.entry("PERMISSION_DENIED", PermissionDeniedException::new));
  final Problem problem;
  private boolean unknown;
  private List<String> ids = List.of();

  IdnodeException(Problem p) {
    super((p.reason().isEmpty() ? p.code() : p.reason()) + ": " + p.message() + (p.field().isEmpty() ? "" : " (field " + p.field() + ")"));
    problem = p;
  }

  static IdnodeException of(Problem p, boolean unknown, Throwable cause) {
    var reason = unknown && !p.reason().equals("CANCELED") ? "OUTCOME_UNKNOWN" : p.reason();
    var e = KINDS.containsKey(reason) ? KINDS.get(reason).apply(p) : switch (p.code()) {
      case "not_found" -> new NotFoundException(p);
      case "invalid_argument" -> new InvalidException(p);
      default -> new IdnodeException(p);
    };
    e.initCause(cause);
    e.unknown = unknown || reason.equals("OUTCOME_UNKNOWN");
    return e;
  }

  // Of a wait that was interrupted, or was too long.
  static IdnodeException gaveUp() {
    var interrupted = Thread.currentThread().isInterrupted();
    return of(interrupted ? Problem.INTERRUPTED : Problem.LATE, false, interrupted ? null : Background.timeout(null));
  }

  // The same with a stack of the caller's own.
  IdnodeException again() { return of(problem, unknown, getCause()); }

  IdnodeException with(List<String> taken) {
    ids = List.copyOf(taken);
    return this;
  }

  /**
   * The gRPC status code in lower case, for example {@code unavailable}.
   *
   * @return the code
   */
  public String code() { return problem.code(); }

  /**
   * Why, by the API's name, for example {@code ID_CLAIMED}. The client's own are {@code NO_ENDPOINT}, {@code DEADLINE_EXCEEDED},
   * {@code CANCELED}, {@code CLIENT_CLOSED}, {@code INVALID_OPTION} and {@code WINDOW_EARLY}.
   *
   * @return the reason; empty if the answer named none
   */
  public String reason() { return problem.reason(); }

  /**
   * The field of the request that is at fault; may be empty.
   *
   * @return its name
   */
  public String field() { return problem.field(); }

  /**
   * Whether a try may have taken effect: the same call with {@link #requestId} counts once.
   *
   * @return true if it may
   */
  public boolean outcomeUnknown() { return unknown; }

  /**
   * The same call with it counts once; null if the call had none.
   *
   * @return the id
   */
  public RequestId requestId() { return problem.requestId(); }

  /**
   * How long the cluster asks the caller to wait, where it says so: {@code RATE_LIMITED}, {@code OVERLOADED}, {@code WINDOW_EARLY}.
   *
   * @return the pause, if any
   */
  public Optional<Duration> retryAfter() { return Optional.ofNullable(problem.retryAfter()); }

  /**
   * Those that {@link HiLo#nextIds(int)} or {@link Snowflake#nextIds(int)} had taken before it failed.
   *
   * @return the ids
   */
  public List<String> ids() { return ids; }
}
