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
public record Key(String key, long number) {
  /**
   * Throws a {@link NullPointerException} if key is null.
   *
   * @param key the document's
   * @param number its number
   */
  public Key { Objects.requireNonNull(key, "key"); }

  /**
   * Keys with whatever number they have.
   *
   * @param keys the documents'
   * @return the keys
   */
  public static List<Key> of(String... keys) { return Arrays.stream(keys).map(key -> new Key(key, 0)).toList(); }

  static Map<String, Object> request(List<Key> keys) {
    return Map.of("keys", keys.stream().map(k -> Map.of("key", k.key, "number", String.valueOf(k.number))).toList());
  }
}
