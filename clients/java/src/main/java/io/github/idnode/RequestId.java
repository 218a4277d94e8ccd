package io.github.idnode;

import java.io.Serializable;
import java.util.Map;
import java.util.Objects;

/**
 * Makes a call count once.
 *
 * @param id 1 to 64 bytes, unique per database and principal
 * @param since the log index that was known before the first try; null before that
 * @serial exclude
 */
public record RequestId(String id, Long since) implements Serializable {
  /**
   * That of an earlier call, as {@link IdnodeException#requestId} has it.
   *
   * @param id 1 to 64 bytes, unique per database and principal
   * @param since the log index that was known before the first try
   */
  public RequestId {
    if (Objects.requireNonNull(id, "id").isEmpty()) {
      throw new InvalidException(new Problem("the request id is empty", "invalid_argument", "INVALID_REQUEST_ID", "request_id"));
    }
  }

  /**
   * That of a call which was not made yet.
   *
   * @param id 1 to 64 bytes, unique per database and principal
   */
  public RequestId(String id) { this(id, null); }

  Map<String, String> fields() { return since == null ? Map.of("id", id) : Map.of("id", id, "retrySince", since.toString()); }
}
