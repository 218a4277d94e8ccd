package io.github.idnode;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What {@link IdnodeClient#nextRange(String, RangeOptions)} and {@link IdnodeClient#hilo(String, RangeOptions)} may be told.
 *
 * @param separator stands between the tag and the number; empty means {@code /}
 * @param size the exact size of the range, or of a handle's first one; 0 leaves it to the cluster
 * @param call what any call may be told; of a handle, what its calls are told
 */
public record RangeOptions(String separator, int size, CallOptions call) {
  /** The usual ones. */
  public RangeOptions() { this("", 0, new CallOptions()); }

  /**
   * These with a separator.
   *
   * @param to one character; empty means {@code /}
   * @return the changed copy
   */
  public RangeOptions withSeparator(String to) { return new RangeOptions(to, size, call); }

  /**
   * These with a size.
   *
   * @param to the size; 0 leaves it to the cluster
   * @return the changed copy
   */
  public RangeOptions withSize(int to) { return new RangeOptions(separator, to, call); }

  /**
   * These with other options of any call.
   *
   * @param to what any call may be told
   * @return the changed copy
   */
  public RangeOptions withCall(CallOptions to) { return new RangeOptions(separator, size, to); }

  Map<String, Object> request(String tag, String label) {
    var request = new LinkedHashMap<String, Object>(Map.of("tag", tag, "label", label, "separator", separator));
    if (size != 0) request.put("size", size);
    return request;
  }
}
