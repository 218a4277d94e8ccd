package io.github.idnode;

/** A limit on names, claims or sizes is reached. Nothing happened. */
public final class QuotaException extends IdnodeException { QuotaException(Problem p) { super(p); } }
