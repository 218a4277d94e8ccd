package io.github.idnode;

/** The caller's certificate has no right to it. Nothing happened. */
public final class PermissionDeniedException extends IdnodeException { PermissionDeniedException(Problem p) { super(p); } }
