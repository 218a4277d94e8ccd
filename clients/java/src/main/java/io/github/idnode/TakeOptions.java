package io.github.idnode;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.time.LocalDate;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * What {@link Series#take(java.util.List, TakeOptions)} may be told.
 *
 * @param values those of the series' format, as {@code Map.of("branch", "BERLIN")}
 * @param date the documents'; null for the present day in the series' zone
 * @param label stored with each new number, at most 64 bytes
 * @param expiresIn replaces the time that the series' definition gives: at least a minute, at most that; null for that
 * @param number what the document of the only key has already, from another tool or by hand; 0 for a new one
 * @param because why that number is entered, in 1 to 128 bytes
 * @param call what any call may be told
 */
public record TakeOptions(
    Map<String, String> values, LocalDate date, String label, Duration expiresIn, long number, String because, CallOptions call) {
  /**
   * Throws a {@link NullPointerException} if values, label, because or call is null.
   *
   * @param values those of the series' format, as {@code Map.of("branch", "BERLIN")}
   * @param date the documents'
   * @param label stored with each new number, at most 64 bytes
   * @param expiresIn replaces the time that the series' definition gives: at least a minute, at most that
   * @param number what the document of the only key has already
   * @param because why that number is entered
   * @param call what any call may be told
   */
  public TakeOptions {
    values = Map.copyOf(values);
    requireNonNull(label, "label");
    requireNonNull(because, "because");
    requireNonNull(call, "call");
  }

  /** The usual ones. */
  public TakeOptions() { this(Map.of(), null, "", null, 0, "", new CallOptions()); }

  /**
   * These with values.
   *
   * @param to those of the series' format
   * @return the changed copy
   */
  public TakeOptions withValues(Map<String, String> to) { return new TakeOptions(to, date, label, expiresIn, number, because, call); }

  /**
   * These with a date.
   *
   * @param to the documents'
   * @return the changed copy
   */
  public TakeOptions withDate(LocalDate to) { return new TakeOptions(values, to, label, expiresIn, number, because, call); }

  /**
   * These with a label.
   *
   * @param to at most 64 bytes
   * @return the changed copy
   */
  public TakeOptions withLabel(String to) { return new TakeOptions(values, date, to, expiresIn, number, because, call); }

  /**
   * These with a time.
   *
   * @param to at least a minute
   * @return the changed copy
   */
  public TakeOptions withExpiresIn(Duration to) { return new TakeOptions(values, date, label, to, number, because, call); }

  /**
   * These with the number that the document of the only key has already. It becomes confirmed; numbers that it passes over
   * are voided.
   *
   * @param to from another tool, or by hand
   * @param why in 1 to 128 bytes
   * @return the changed copy
   */
  public TakeOptions withNumber(long to, String why) { return new TakeOptions(values, date, label, expiresIn, to, why, call); }

  /**
   * These with other options of any call.
   *
   * @param to what any call may be told
   * @return the changed copy
   */
  public TakeOptions withCall(CallOptions to) { return new TakeOptions(values, date, label, expiresIn, number, because, to); }

  Map<String, Object> in(Map<String, ?> request) {
    var whole = new LinkedHashMap<String, Object>(request);
    whole.putAll(Map.of("values", values, "label", label, "date", date == null ? "" : date.toString()));
    if (expiresIn != null) whole.put("expiresIn", String.format(Locale.ROOT, "%d.%09ds", expiresIn.toSeconds(), expiresIn.getNano()));
    if (number != 0) whole.putAll(Map.of("number", Long.toString(number), "because", because));
    return whole;
  }
}
