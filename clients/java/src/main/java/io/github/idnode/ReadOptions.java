package io.github.idnode;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What calls that only read may be told.
 *
 * @param stale reads what the node has applied, which may be old
 * @param call what any call may be told
 */
public record ReadOptions(boolean stale, CallOptions call) {
  /** The usual ones. */
  public ReadOptions() { this(false, new CallOptions()); }

  /**
   * These with or without reading what may be old.
   *
   * @param to whether what may be old is read
   * @return the changed copy
   */
  public ReadOptions withStale(boolean to) { return new ReadOptions(to, call); }

  /**
   * These with other options of any call.
   *
   * @param to what any call may be told
   * @return the changed copy
   */
  public ReadOptions withCall(CallOptions to) { return new ReadOptions(stale, to); }

  Map<String, Object> in(Map<String, ?> request) {
    var whole = new LinkedHashMap<String, Object>(request);
    if (stale) whole.put("consistency", "CONSISTENCY_STALE");
    return whole;
  }
}
