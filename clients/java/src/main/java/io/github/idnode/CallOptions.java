package io.github.idnode;

import java.time.Duration;
import java.util.regex.Pattern;

/**
 * What any call may be told.
 *
 * @param timeout bounds the call with all its tries; null for the client's
 * @param database whose ids are given; null for the client's
 * @param requestId makes the call count once, however often it is made; null for one that the client makes. Calls that only
 *     read, those of a series, and those for server-side ids and GUIDs refuse it
 * @param traceparent the trace that the call is part of, as the W3C's Trace Context writes it; null for none
 */
public record CallOptions(Duration timeout, String database, RequestId requestId, String traceparent) {
  private static final Pattern TRACEPARENT = Pattern.compile("[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}");

  /**
   * Throws an {@link IllegalArgumentException} if the timeout is not above zero, or the traceparent is none.
   *
   * @param timeout bounds the call with all its tries
   * @param database whose ids are given
   * @param requestId makes the call count once, however often it is made
   * @param traceparent the trace that the call is part of, as the W3C's Trace Context writes it
   */
  public CallOptions {
    if (timeout != null) timeout = IdnodeConfig.checked(timeout);
    if (traceparent != null && !TRACEPARENT.matcher(traceparent).matches()) {
      throw new IllegalArgumentException("a traceparent is 00-TRACE-SPAN-FLAGS in hexadecimal digits, not " + traceparent);
    }
  }

  /** The client's own. */
  public CallOptions() { this(null, null, null, null); }

  /**
   * These with a timeout.
   *
   * @param to above zero
   * @return the changed copy
   */
  public CallOptions withTimeout(Duration to) { return new CallOptions(to, database, requestId, traceparent); }

  /**
   * These with a database.
   *
   * @param to whose ids are given
   * @return the changed copy
   */
  public CallOptions withDatabase(String to) { return new CallOptions(timeout, to, requestId, traceparent); }

  /**
   * These with a request id of the caller's own, for the first time that it makes the call.
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
   * These with a trace.
   *
   * @param to as the W3C's Trace Context writes it
   * @return the changed copy
   */
  public CallOptions withTraceparent(String to) { return new CallOptions(timeout, database, requestId, to); }
}
