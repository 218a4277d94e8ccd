package io.github.idnode;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * The number that a call on a series means.
 *
 * @param key the document's
 * @param number its number; 0 is whatever number the key has
 */
public record NumberOf(String key, long number) {
  /**
   * Throws a {@link NullPointerException} if key is null.
   *
   * @param key the document's
   * @param number its number
   */
  public NumberOf { Objects.requireNonNull(key, "key"); }

  /**
   * Whatever numbers keys have.
   *
   * @param keys the documents'
   * @return those of the keys, in their order
   */
  public static List<NumberOf> keys(String... keys) { return Arrays.stream(keys).map(key -> new NumberOf(key, 0)).toList(); }

  static Map<String, Object> request(List<NumberOf> numbers) {
    return Map.of("keys", numbers.stream().map(k -> Map.of("key", k.key, "number", String.valueOf(k.number))).toList());
  }
}
