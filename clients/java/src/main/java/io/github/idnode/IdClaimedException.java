package io.github.idnode;

/** The id is claimed, or was issued by an identity. */
public final class IdClaimedException extends IdnodeException { IdClaimedException(Problem p) { super(p); } }
