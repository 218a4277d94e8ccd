package io.github.idnode;

/** The caller has reached a limit of its own. Nothing happened; {@link #retryAfter} says when to come back. */
public final class RateLimitedException extends IdnodeException { RateLimitedException(Problem p) { super(p); } }
