package io.github.idnode;

/**
 * A number of a HiLo range.
 *
 * @param value the number, which no other document of the collection has
 * @param prefix stands before it in an id
 * @param nodeTag stands after it; may be empty
 */
public record HiLoNumber(long value, String prefix, String nodeTag) {
  /** The id, for example {@code users/65-A}. */
  @Override
  public String toString() { return prefix + value + (nodeTag.isEmpty() ? "" : "-" + nodeTag); }
}
