package io.github.idnode;

/** The nodes that answer are of another cluster than the client, or the endpoints are of two. Nothing happened. */
public final class OtherClusterException extends IdnodeException { OtherClusterException(Problem p) { super(p); } }
