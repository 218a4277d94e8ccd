package io.github.idnode;

/**
 * What {@link IdnodeClient#nextN(String, int, NextOptions)} may be told.
 *
 * @param separator stands between the parts of ids; empty means {@code /}
 * @param claim records a finished id in the cluster as taken
 * @param call what any call may be told
 */
public record NextOptions(String separator, boolean claim, CallOptions call) {
  /** The usual ones. */
  public NextOptions() { this("", false, new CallOptions()); }

  /**
   * These with a separator.
   *
   * @param to one character; empty means {@code /}
   * @return the changed copy
   */
  public NextOptions withSeparator(String to) { return new NextOptions(to, claim, call); }

  /**
   * These with or without a claim.
   *
   * @param to whether a finished id is recorded as taken
   * @return the changed copy
   */
  public NextOptions withClaim(boolean to) { return new NextOptions(separator, to, call); }

  /**
   * These with other options of any call.
   *
   * @param to what any call may be told
   * @return the changed copy
   */
  public NextOptions withCall(CallOptions to) { return new NextOptions(separator, claim, to); }
}
