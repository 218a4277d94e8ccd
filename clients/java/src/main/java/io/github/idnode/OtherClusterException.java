package io.github.idnode;

/** The nodes that answer belong to another cluster than the first that did. Nothing happened in its own. */
public final class OtherClusterException extends IdnodeException { OtherClusterException(Problem p) { super(p); } }
