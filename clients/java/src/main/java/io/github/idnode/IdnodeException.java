package io.github.idnode;

import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * Why a call failed. The subclasses tell the cases apart that a program can act on.
 *
 * @serial exclude
 */
public class IdnodeException extends RuntimeException {
  final Problem problem;
  private boolean unknown;
  private List<String> ids = List.of();

  IdnodeException(Problem p) {
    super((p.reason().isEmpty() ? p.code() : p.reason()) + ": " + p.message() + (p.field().isEmpty() ? "" : " (field " + p.field() + ")"));
    problem = p;
  }

  static IdnodeException of(Problem p, boolean unknown, Throwable cause) {
    var reason = Reason.of(p.reason());
    if (unknown && reason != Reason.INTERRUPTED) reason = Reason.OUTCOME_UNKNOWN;
    var e = reason.exception != null ? reason.exception.apply(p) : switch (p.code()) {
      case "not_found" -> new NotFoundException(p);
      case "invalid_argument" -> new InvalidException(p);
      default -> new IdnodeException(p);
    };
    e.initCause(cause);
    e.unknown = unknown || reason == Reason.OUTCOME_UNKNOWN;
    return e;
  }

  // Of a wait that was interrupted, or was too long.
  static IdnodeException gaveUp() { return gaveUp(false); }

  static IdnodeException gaveUp(boolean unknown) {
    var interrupted = Thread.currentThread().isInterrupted();
    return of(interrupted ? Problem.INTERRUPTED : Problem.LATE, unknown, interrupted ? null : Background.timeout(null));
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
   * Why.
   *
   * @return the reason
   */
  public Reason reason() { return Reason.of(problem.reason()); }

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
   * How long the cluster asks the caller to wait, where it says so: {@link Reason#RATE_LIMITED}, {@link Reason#OVERLOADED}.
   *
   * @return the pause, if any
   */
  public Optional<Duration> retryAfter() { return Optional.ofNullable(problem.retryAfter()); }

  /**
   * Those that {@link HiLo#nextIds(int)} or {@link Snowflake#next(int)} had taken before it failed.
   *
   * @return the ids
   */
  public List<String> ids() { return ids; }
}
