package io.github.idnode;

/** The counter has no numbers left. */
public final class ExhaustedException extends IdnodeException { ExhaustedException(Problem p) { super(p); } }
