package io.github.idnode;

import static java.util.Objects.requireNonNull;

/** What {@link IdnodeClient#hilo(String, HiLoOptions)} may be told. It does not change: each method returns a changed copy. */
public final class HiLoOptions {
  final String separator;
  final int firstSize;
  final CallOptions call;

  /** The usual ones. */
  public HiLoOptions() { this("", 0, new CallOptions()); }

  private HiLoOptions(String separator, int firstSize, CallOptions call) {
    this.separator = requireNonNull(separator, "separator");
    this.firstSize = firstSize;
    this.call = requireNonNull(call, "call");
  }

  /**
   * These with what stands between the tag and the number.
   *
   * @param to one character; empty means {@code /}
   * @return the changed copy
   */
  public HiLoOptions withSeparator(String to) { return new HiLoOptions(to, firstSize, call); }

  /**
   * These with the size of the handle's first range. Later sizes follow use.
   *
   * @param to 1 to 1,048,576 numbers; 0 leaves it to the cluster
   * @return the changed copy
   */
  public HiLoOptions withFirstSize(int to) { return new HiLoOptions(separator, to, call); }

  /**
   * These with other options of any call, which are those of the handle's calls.
   *
   * @param to what any call may be told
   * @return the changed copy
   */
  public HiLoOptions withCall(CallOptions to) { return new HiLoOptions(separator, firstSize, to); }
}
