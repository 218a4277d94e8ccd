package io.github.idnode;

/** The cluster has no leader, or no majority. Nothing happened. */
public final class NoQuorumException extends IdnodeException { NoQuorumException(Problem p) { super(p); } }
