package io.github.idnode;

/** No node answered. Nothing happened. */
public final class NoEndpointException extends IdnodeException { NoEndpointException(Problem p) { super(p); } }
