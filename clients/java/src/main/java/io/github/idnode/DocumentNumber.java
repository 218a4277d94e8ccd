package io.github.idnode;

import java.time.Instant;
import java.time.LocalDate;
import java.util.List;

/**
 * The number of a document.
 *
 * @param key the document's
 * @param text the number in the series' format
 * @param scope the period, where numbers begin again, and the values of the format
 * @param number the number in its scope
 * @param state what became of it
 * @param overdue whether it is open and its time has ended
 * @param date the document's; null if it has none
 * @param taken when the key got it, by the leader's clock; null if that is not known
 * @param expires when its time ends; null for never
 * @param label what its caller said of it
 * @param reason that of a voided number
 * @param note that of the range which an authority allotted
 */
public record DocumentNumber(
    String key, String text, List<String> scope, long number, NumberState state, boolean overdue, LocalDate date, Instant taken,
    Instant expires, String label, String reason, String note) {
  /**
   * What confirm, void and release take.
   *
   * @return the key and the number
   */
  public Key bound() { return new Key(key, number); }

  static DocumentNumber of(Answer n) {
    return new DocumentNumber(
        n.text("key"), n.text("text"), n.texts("scope"), n.number("number"), NumberState.of(n.maybe("state")),
        n.flag("overdue"), n.text("date").isEmpty() ? null : LocalDate.parse(n.text("date")), n.time("taken"), n.time("expires"),
        n.text("label"), n.text("reason"), n.text("note"));
  }
}
