package io.github.idnode;

/** The request id was used for another request. */
public final class RequestIdReusedException extends IdnodeException { RequestIdReusedException(Problem p) { super(p); } }
