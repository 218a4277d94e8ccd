package io.github.idnode;

import static java.util.Objects.requireNonNull;

import java.util.LinkedHashMap;
import java.util.Map;

/** What calls that only read may be told. It does not change: each method returns a changed copy. */
public final class ReadOptions {
  final CallOptions call;
  private final boolean stale;

  /** The usual ones. */
  public ReadOptions() { this(false, new CallOptions()); }

  private ReadOptions(boolean stale, CallOptions call) {
    this.stale = stale;
    this.call = requireNonNull(call, "call");
  }

  /**
   * These with or without reading what the node has applied, which may be old.
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

  Call.Kind kind() { return stale ? Call.Kind.LOCAL : Call.Kind.READS; }

  Map<String, Object> in(Map<String, ?> request) {
    var whole = new LinkedHashMap<String, Object>(request);
    if (stale) whole.put("consistency", "CONSISTENCY_STALE");
    return whole;
  }
}
