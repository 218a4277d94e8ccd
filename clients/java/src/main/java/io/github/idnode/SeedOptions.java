package io.github.idnode;

/**
 * What {@link Identity#seed(long, SeedOptions)} may be told.
 *
 * @param force sets exactly the value, also a lower one: values may then come twice
 * @param expected only if this is the current value, else the call throws a {@link ConcurrencyException}; null for any
 * @param call what any call may be told
 */
public record SeedOptions(boolean force, Long expected, CallOptions call) {
  /** The usual ones. */
  public SeedOptions() { this(false, null, new CallOptions()); }

  /**
   * These with or without force.
   *
   * @param to whether a lower value is set too
   * @return the changed copy
   */
  public SeedOptions withForce(boolean to) { return new SeedOptions(to, expected, call); }

  /**
   * These with an expected value.
   *
   * @param to what the current value must be
   * @return the changed copy
   */
  public SeedOptions withExpected(long to) { return new SeedOptions(force, to, call); }

  /**
   * These with other options of any call.
   *
   * @param to what any call may be told
   * @return the changed copy
   */
  public SeedOptions withCall(CallOptions to) { return new SeedOptions(force, expected, to); }
}
