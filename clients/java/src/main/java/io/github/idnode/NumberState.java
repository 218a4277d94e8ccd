package io.github.idnode;

/** What became of a number of a series. A state only goes forward. */
public enum NumberState {
  /** It was taken. */
  OPEN,
  /** It is final. */
  CONFIRMED,
  /** It belongs to no document, for a reason. */
  VOIDED,
  /** It was given back, and another key may get it. */
  RELEASED,
  /** A restore or a recovery left open whether a document has it. Nobody else gets it. */
  UNKNOWN,
  /** A state that this version does not know. */
  OTHER;

  static NumberState of(String name) {
    for (var state : values()) if (name.equals("NUMBER_STATE_" + state)) return state;
    return OTHER;
  }
}
