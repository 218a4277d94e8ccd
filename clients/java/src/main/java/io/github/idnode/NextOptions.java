package io.github.idnode;

import static java.util.Objects.requireNonNull;

/** What {@link IdnodeClient#nextN(String, int, NextOptions)} may be told. It does not change: each method returns a changed copy. */
public final class NextOptions {
  final String separator;
  final boolean claim;
  final CallOptions call;

  /** The usual ones. */
  public NextOptions() { this("", false, new CallOptions()); }

  private NextOptions(String separator, boolean claim, CallOptions call) {
    this.separator = requireNonNull(separator, "separator");
    this.claim = claim;
    this.call = requireNonNull(call, "call");
  }

  /**
   * These with what stands between the parts of ids.
   *
   * @param to one character; empty means {@code /}
   * @return the changed copy
   */
  public NextOptions withSeparator(String to) { return new NextOptions(to, claim, call); }

  /**
   * These with or without a claim.
   *
   * @param to whether a finished id is recorded in the cluster as taken
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
