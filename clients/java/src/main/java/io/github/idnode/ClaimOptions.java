package io.github.idnode;

import static java.util.Objects.requireNonNull;

/** What {@link IdnodeClient#claim(String, ClaimOptions)} may be told. It does not change: each method returns a changed copy. */
public final class ClaimOptions {
  final String separator;
  final CallOptions call;

  /** The usual ones. */
  public ClaimOptions() { this("", new CallOptions()); }

  private ClaimOptions(String separator, CallOptions call) {
    this.separator = requireNonNull(separator, "separator");
    this.call = requireNonNull(call, "call");
  }

  /**
   * These with what stands between the parts of the id.
   *
   * @param to one character; empty means {@code /}
   * @return the changed copy
   */
  public ClaimOptions withSeparator(String to) { return new ClaimOptions(to, call); }

  /**
   * These with other options of any call.
   *
   * @param to what any call may be told
   * @return the changed copy
   */
  public ClaimOptions withCall(CallOptions to) { return new ClaimOptions(separator, to); }
}
