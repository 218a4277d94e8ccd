package io.github.idnode;

import java.time.Instant;

/**
 * A HiLo range. Prefix and node tag belong to its numbers alone.
 *
 * @param prefix stands before a number in an id
 * @param nodeTag stands after it
 * @param low the first number
 * @param high the last one, included
 * @param size the size granted
 * @param at the cluster's time of the range; null if it has none
 * @param fromReserve the numbers may lie below those of the last range
 * @param token proves that the range is the caller's when it is returned
 */
public record Range(String prefix, String nodeTag, long low, long high, long size, Instant at, boolean fromReserve, String token) {
  static Range of(Answer r) {
    return new Range(
        r.text("prefix"), r.text("nodeTag"), r.number("low"), r.number("high"), r.number("size"), r.time("rangeAt"), r.flag("fromReserve"),
        r.text("token"));
  }
}
