package io.github.idnode;

/** The cluster no longer knows whether the first try of the call happened. */
public final class RequestIdExpiredException extends IdnodeException { RequestIdExpiredException(Problem p) { super(p); } }
