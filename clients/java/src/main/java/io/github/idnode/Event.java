package io.github.idnode;

import java.time.Duration;

/**
 * Something that a client did for its calls; see {@link IdnodeConfig#withObserver}.
 *
 * @param kind its kind, which says what else it has
 * @param node the address of a node; empty if there is none
 * @param attempt counts the tries of a call, from 1
 * @param duration the time that it took
 * @param error why it failed; null if it did not
 */
public record Event(Kind kind, String node, int attempt, Duration duration, Throwable error) {
  /** The kinds of events. */
  public enum Kind {
    /** A try of a call ended. It has all fields. A HiLo id from a range at hand has none. */
    TRY,
    /** A look for the leader ended. It has a duration, and the leader's node if one is known. */
    LOOK,
    /** Calls now go to another leader, at node. */
    LEADER,
    /** Unused numbers of a HiLo range came back after another client had got a range of the tag. They are a gap. */
    GAP
  }
}
