package io.github.idnode;

import java.io.Serializable;
import java.time.Duration;

// What went wrong: a text for people, and what an IdnodeException tells.
record Problem(String message, String code, String reason, String field, RequestId requestId, Duration retryAfter) implements Serializable {
  static final Problem CLOSED = new Problem("the client or the handle is closed", "canceled", "CLIENT_CLOSED");
  static final Problem INTERRUPTED = new Problem("the thread was interrupted", "canceled", "CANCELED");
  static final Problem LATE = new Problem("the time was over", "deadline_exceeded", "DEADLINE_EXCEEDED");

  Problem(String message, String code, String reason) { this(message, code, reason, ""); }

  Problem(String message, String code, String reason, String field) { this(message, code, reason, field, null, null); }

  Problem with(String becomes, RequestId id) { return new Problem(message, code, becomes, field, id, retryAfter); }
}
