package io.github.idnode;

import java.time.Duration;

/** Something that a client did for its calls; see {@link IdnodeConfig#withObserver}. Later versions may have more kinds. */
public sealed interface Event permits SeenEvent {
  /** The kinds of events. */
  enum Kind {
    /** A try of a call ended. It has all fields. A HiLo id from a range at hand has none. */
    TRY,
    /** A look for the leader ended. It has a duration, and the leader's node if one is known. */
    LOOK,
    /** Calls now go to another leader, at node. */
    LEADER,
    /** Unused numbers of a HiLo range came back after another client had got a range of the tag. They are a gap. */
    GAP
  }

  /**
   * Its kind, which says what else it has.
   *
   * @return the kind
   */
  Kind kind();

  /**
   * The address of a node.
   *
   * @return {@code host:port}; empty if there is none
   */
  String node();

  /**
   * Counts the tries of a call.
   *
   * @return from 1; 0 if it is no try
   */
  int attempt();

  /**
   * The time that it took.
   *
   * @return zero if it took none
   */
  Duration duration();

  /**
   * Why it failed, as if the call had ended with it.
   *
   * @return null if it did not
   */
  IdnodeException error();
}
