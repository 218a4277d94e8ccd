package io.github.idnode;

import static java.util.Objects.requireNonNull;

/** What {@link Identity#seed(long, SeedOptions)} may be told. It does not change: each method returns a changed copy. */
public final class SeedOptions {
  final boolean force;
  final Long expected; // Null for any.
  final CallOptions call;

  /** The usual ones. */
  public SeedOptions() { this(false, null, new CallOptions()); }

  private SeedOptions(boolean force, Long expected, CallOptions call) {
    this.force = force;
    this.expected = expected;
    this.call = requireNonNull(call, "call");
  }

  /**
   * These with or without force, which sets exactly the value, also a lower one: values may then come twice.
   *
   * @param to whether a lower value is set too
   * @return the changed copy
   */
  public SeedOptions withForce(boolean to) { return new SeedOptions(to, expected, call); }

  /**
   * These with an expected value. If another one is current, the call throws a {@link ConcurrencyException}.
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
