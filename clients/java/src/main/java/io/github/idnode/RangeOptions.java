package io.github.idnode;

import static java.util.Objects.requireNonNull;

import java.util.LinkedHashMap;
import java.util.Map;

/** What {@link IdnodeClient#nextRange(String, RangeOptions)} may be told. It does not change: each method returns a changed copy. */
public final class RangeOptions {
  final CallOptions call;
  private final String separator;
  private final int size;
  private final Range last; // Null for none.

  /** The usual ones. */
  public RangeOptions() { this("", 0, null, new CallOptions()); }

  private RangeOptions(String separator, int size, Range last, CallOptions call) {
    this.separator = requireNonNull(separator, "separator");
    this.size = size;
    this.last = last;
    this.call = requireNonNull(call, "call");
  }

  /**
   * These with what stands between the tag and the number.
   *
   * @param to one character; empty means {@code /}
   * @return the changed copy
   */
  public RangeOptions withSeparator(String to) { return new RangeOptions(to, size, last, call); }

  /**
   * These with the exact size of the range.
   *
   * @param to 1 to 1,048,576 numbers; 0 leaves it to the cluster
   * @return the changed copy
   */
  public RangeOptions withSize(int to) { return new RangeOptions(separator, to, last, call); }

  /**
   * These with the last range that the caller has got: the next one begins above it, and its size follows use.
   *
   * @param to what {@link IdnodeClient#nextRange(String)} gave
   * @return the changed copy
   */
  public RangeOptions withLast(Range to) { return new RangeOptions(separator, size, requireNonNull(to, "last"), call); }

  /**
   * These with other options of any call.
   *
   * @param to what any call may be told
   * @return the changed copy
   */
  public RangeOptions withCall(CallOptions to) { return new RangeOptions(separator, size, last, to); }

  Map<String, Object> request(String tag, String label) {
    var request = request(tag, label, separator, size);
    if (last != null) follow(request, last, last.high());
    return request;
  }

  static Map<String, Object> request(String tag, String label, String separator, int size) {
    var request = new LinkedHashMap<String, Object>(Map.of("tag", tag, "label", label, "separator", separator));
    if (size != 0) request.put("size", size);
    return request;
  }

  // Names the last range, and the highest number that is known to be taken.
  static void follow(Map<String, Object> request, Range last, long max) {
    request.putAll(Map.of("lastSize", last.granted(), "lastMax", String.valueOf(max)));
    if (last.at() != null) request.put("lastRangeAt", last.at().toString());
  }
}
