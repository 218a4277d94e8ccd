package io.github.idnode;

/** The document's key has a number of another date or scope. */
public final class KeyConflictException extends IdnodeException { KeyConflictException(Problem p) { super(p); } }
