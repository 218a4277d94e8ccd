package io.github.idnode;

import java.time.Instant;
import java.time.LocalDate;
import java.util.List;

record TakenNumber(
    String key, String text, List<String> scope, long number, NumberState state, boolean overdue, LocalDate date, Instant taken,
    Instant expires, String label, String reason, String note) implements DocumentNumber {
  static DocumentNumber of(Answer n) {
    return new TakenNumber(
        n.text("key"), n.text("text"), n.texts("scope"), n.number("number"), NumberState.of(n.maybe("state")),
        n.flag("overdue"), n.text("date").isEmpty() ? null : LocalDate.parse(n.text("date")), n.time("taken"), n.time("expires"),
        n.text("label"), n.text("reason"), n.text("note"));
  }
}
