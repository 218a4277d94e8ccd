package io.github.idnode;

/**
 * What {@link IdnodeClient#claim(String, ClaimOptions)} may be told.
 *
 * @param separator stands between the parts of the id; empty means {@code /}
 * @param call what any call may be told
 */
public record ClaimOptions(String separator, CallOptions call) {
  /** The usual ones. */
  public ClaimOptions() { this("", new CallOptions()); }

  /**
   * These with a separator.
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
