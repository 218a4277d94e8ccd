package io.github.idnode;

import java.time.Instant;

/** A HiLo range. Prefix and node tag belong to its numbers alone. */
public sealed interface Range permits GrantedRange {
  /**
   * What stands before a number in an id.
   *
   * @return for example {@code users/}
   */
  String prefix();

  /**
   * What stands after it.
   *
   * @return for example {@code A}; may be empty
   */
  String nodeTag();

  /**
   * The first number.
   *
   * @return at least 1
   */
  long low();

  /**
   * The last one, included.
   *
   * @return at least {@link #low}
   */
  long high();

  /**
   * The size that the cluster granted. The range may have a few numbers more.
   *
   * @return how many numbers
   */
  long granted();

  /**
   * The cluster's time of the range.
   *
   * @return the time; null if it has none
   */
  Instant at();

  /**
   * Whether the numbers may lie below those of the last range.
   *
   * @return true if the range is from a node's reserve
   */
  boolean fromReserve();

  /**
   * What proves that the range is the caller's when it is returned.
   *
   * @return opaque
   */
  String token();
}
