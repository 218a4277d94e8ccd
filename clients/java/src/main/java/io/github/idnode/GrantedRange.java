package io.github.idnode;

import java.time.Instant;

record GrantedRange(String prefix, String nodeTag, long low, long high, long granted, Instant at, boolean fromReserve, String token)
    implements Range {
  static Range of(Answer r) {
    return new GrantedRange(
        r.text("prefix"), r.text("nodeTag"), r.number("low"), r.number("high"), r.number("size"), r.time("rangeAt"), r.flag("fromReserve"),
        r.text("token"));
  }
}
