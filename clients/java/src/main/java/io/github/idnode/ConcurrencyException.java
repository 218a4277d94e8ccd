package io.github.idnode;

/** An expected value is not the current one. */
public final class ConcurrencyException extends IdnodeException { ConcurrencyException(Problem p) { super(p); } }
