package io.github.idnode;

import java.time.Instant;
import java.time.LocalDate;
import java.util.List;

/** The number of a document. */
public sealed interface DocumentNumber permits TakenNumber {
  /**
   * The document's key.
   *
   * @return the key
   */
  String key();

  /**
   * The number in the series' format.
   *
   * @return the text
   */
  String text();

  /**
   * The period, where numbers begin again, and the values of the format.
   *
   * @return the scope
   */
  List<String> scope();

  /**
   * The number in its scope.
   *
   * @return at least 1
   */
  long number();

  /**
   * What became of it.
   *
   * @return the state
   */
  NumberState state();

  /**
   * Whether it is open and its time has ended.
   *
   * @return true if so
   */
  boolean overdue();

  /**
   * The document's date.
   *
   * @return the date; null if it has none
   */
  LocalDate date();

  /**
   * When the key got it, by the leader's clock.
   *
   * @return the time; null if that is not known
   */
  Instant taken();

  /**
   * When its time ends.
   *
   * @return the time; null for never
   */
  Instant expires();

  /**
   * What its caller said of it.
   *
   * @return the label; may be empty
   */
  String label();

  /**
   * Why it was voided.
   *
   * @return the reason; empty if it was not
   */
  String reason();

  /**
   * The note of the range which an authority allotted.
   *
   * @return the note; may be empty
   */
  String note();

  /**
   * What confirm, void and release take.
   *
   * @return the key and the number
   */
  default NumberOf numberOf() { return new NumberOf(key(), number()); }
}
