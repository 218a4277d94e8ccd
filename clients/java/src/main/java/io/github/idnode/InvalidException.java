package io.github.idnode;

/** The request is wrong: {@link #field} says where, {@link #reason} why. */
public final class InvalidException extends IdnodeException { InvalidException(Problem p) { super(p); } }
