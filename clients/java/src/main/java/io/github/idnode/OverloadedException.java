package io.github.idnode;

/** There are too many calls. Nothing happened; {@link #retryAfter} says when to come back. */
public final class OverloadedException extends IdnodeException { OverloadedException(Problem p) { super(p); } }
