package io.github.idnode;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.time.LocalDate;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/** What {@link Series#take(java.util.List, TakeOptions)} may be told. It does not change: each method returns a changed copy. */
public final class TakeOptions {
  final CallOptions call;
  private final Map<String, String> values;
  private final LocalDate date; // Null for the present day in the series' zone.
  private final Duration expiresIn; // Null for the time that the series' definition gives.
  private final long number; // 0 for a new one.
  private final String label, because;

  /** The usual ones. */
  public TakeOptions() { this(Map.of(), null, "", null, 0, "", new CallOptions()); }

  private TakeOptions(Map<String, String> values, LocalDate date, String label, Duration expiresIn, long number, String because, CallOptions call) {
    this.values = Map.copyOf(values);
    this.date = date;
    this.label = requireNonNull(label, "label");
    this.expiresIn = expiresIn;
    this.number = number;
    this.because = requireNonNull(because, "because");
    this.call = requireNonNull(call, "call");
  }

  /**
   * These with the values of the series' format.
   *
   * @param to as {@code Map.of("branch", "BERLIN")}
   * @return the changed copy
   */
  public TakeOptions withValues(Map<String, String> to) { return new TakeOptions(to, date, label, expiresIn, number, because, call); }

  /**
   * These with the documents' date. At first it is the present day in the series' zone.
   *
   * @param to null for the present day
   * @return the changed copy
   */
  public TakeOptions withDate(LocalDate to) { return new TakeOptions(values, to, label, expiresIn, number, because, call); }

  /**
   * These with a label, which is stored with each new number.
   *
   * @param to at most 64 bytes
   * @return the changed copy
   */
  public TakeOptions withLabel(String to) { return new TakeOptions(values, date, to, expiresIn, number, because, call); }

  /**
   * These with a time that replaces the one of the series' definition.
   *
   * @param to at least a minute, at most that of the definition; null for that
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
    if (number != 0 || !because.isEmpty()) whole.putAll(Map.of("number", Long.toString(number), "because", because));
    return whole;
  }
}
