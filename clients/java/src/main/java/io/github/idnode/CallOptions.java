package io.github.idnode;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.util.regex.Pattern;

/** What any call may be told. It does not change: each method returns a changed copy. */
public final class CallOptions {
  private static final Pattern TRACEPARENT = Pattern.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}");
  final Duration timeout; // Null for the client's.
  final String database; // Null for the client's.
  final RequestId requestId; // Null for one that the client makes.
  final String traceparent; // Null for none.

  /** The client's own. */
  public CallOptions() { this(null, null, null, null); }

  private CallOptions(Duration timeout, String database, RequestId requestId, String traceparent) {
    this.timeout = timeout;
    this.database = database;
    this.requestId = requestId;
    this.traceparent = traceparent;
  }

  /**
   * These with the time that bounds the call with all its tries. Throws an {@link IllegalArgumentException} if it is not above zero.
   *
   * @param to above zero
   * @return the changed copy
   */
  public CallOptions withTimeout(Duration to) { return new CallOptions(IdnodeConfig.checked(to), database, requestId, traceparent); }

  /**
   * These with the database whose ids are given.
   *
   * @param to its name; empty means {@code default}
   * @return the changed copy
   */
  public CallOptions withDatabase(String to) { return new CallOptions(timeout, requireNonNull(to, "database"), requestId, traceparent); }

  /**
   * These with a request id of the caller's own, for the first time that it makes the call, which then counts once, however often it is
   * made. Calls that only read, those of a series, and those for server-side ids and GUIDs refuse it.
   *
   * @param to 1 to 64 bytes
   * @return the changed copy
   */
  public CallOptions withRequestId(String to) { return withRequestId(new RequestId(to)); }

  /**
   * These with the request id of an exception.
   *
   * @param to 1 to 64 bytes
   * @return the changed copy
   */
  public CallOptions withRequestId(RequestId to) { return new CallOptions(timeout, database, to, traceparent); }

  /**
   * These with the trace that the call is part of. Throws an {@link IllegalArgumentException} if it is none.
   *
   * @param to as the W3C's Trace Context writes it
   * @return the changed copy
   */
  public CallOptions withTraceparent(String to) {
    if (TRACEPARENT.matcher(to).matches()) return new CallOptions(timeout, database, requestId, to);
    throw new IllegalArgumentException("a traceparent is 00-TRACE-SPAN-FLAGS in hexadecimal digits, not " + to);
  }
}
