package io.github.idnode;

/** The client, or the HiLo handle, was closed. Nothing happened. */
public final class ClosedException extends IdnodeException { ClosedException(Problem p) { super(p); } }
