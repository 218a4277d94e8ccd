package io.github.idnode;

/** There is no such identity, counter, claim or number. */
public final class NotFoundException extends IdnodeException { NotFoundException(Problem p) { super(p); } }
